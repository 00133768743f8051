"""What each operator computes, and what it does at a border: the two facts of an API page that no code tells."""

from __future__ import annotations

_BLEND = r"y = b + \alpha\,(x - b)"
_NONE = "no pixel looks at another"
_CLIPPED = "what lies outside of the image is clipped"
_BORDERS = "``border``: constant with ``fill``, edge, reflect, symmetric, wrap"
_PASTED = r"(1 - m_p)\, x_p + m_p\, s_{p - (\mathrm{left},\mathrm{top})}"

#: name -> formula in LaTeX, border rule
FORMULAS: dict[str, tuple[str, str]] = {
    "crop": (
        r"y_{c,i,j} = x_{c,\,i+\mathrm{top},\,j+\mathrm{left}}",
        "0 outside of the image",
    ),
    "paste": (
        rf"y_p = {_PASTED},\quad m = 1 \text{{ without a mask}}",
        _CLIPPED,
    ),
    "paste_": (
        rf"x_p \leftarrow {_PASTED}",
        _CLIPPED,
    ),
    "paste_out": (
        rf"\mathrm{{out}}_p = {_PASTED}",
        _CLIPPED,
    ),
    "accumulate": (
        r"t_{p+(\mathrm{left},\mathrm{top})} \mathrel{+}= w_p\, s_p,\qquad n_{p+(\mathrm{left},\mathrm{top})} \mathrel{+}= w_p",
        "what lies outside of the buffers is clipped",
    ),
    "pad": (
        r"y_{c,i,j} = x_{c,\,b(i-\mathrm{top}),\,b(j-\mathrm{left})}",
        "``mode`` is the function b: constant, edge, reflect, symmetric or wrap",
    ),
    "resize": (
        r"y = R\, x\, C^\top,\quad R_{i,k} = \frac{f\big((k + \tfrac12 - u_i)/s\big)}{\sum_l f\big((l + \tfrac12 - u_i)/s\big)},"
        r"\ u_i = (i+\tfrac12)\,\tfrac{H}{h},\ s = \max(\tfrac{H}{h}, 1)",
        "the filter is cut off and weighed anew (PIL); the border pixel repeats (OpenCV)",
    ),
    "resize_out": (r"\mathrm{out} = R\, x\, C^\top", "as :func:`imgops.resize`"),
    "resized_crop": (
        r"y^{(n)} = R\, x^{(n)}_{\mathrm{box}_n}\, C^\top",
        "the crop's own border: nothing around it is seen",
    ),
    "warp_affine": (
        r"y(p) = \sum_q k\big(M^{-1} p - q\big)\, x_q",
        _BORDERS,
    ),
    "warp_perspective": (
        r"y(p) = \sum_q k\big(\pi(M^{-1} [p, 1]) - q\big)\, x_q,\quad \pi(u, v, w) = (u/w, v/w)",
        _BORDERS,
    ),
    "remap": (
        r"y(p) = \sum_q k\big(\mathrm{map}(p) - q\big)\, x_q",
        _BORDERS,
    ),
    "flip": (r"y_{c,i,j} = x_{c,i,W-1-j}", _NONE),
    "rotate90": (r"y_{c,i,j} = x_{c,j,W-1-i}\ \text{(once, counterclockwise)}", _NONE),
    "adjust_brightness": (_BLEND + r",\quad b = 0", _NONE),
    "adjust_contrast": (_BLEND + r",\quad b = \operatorname{mean} L(x)", _NONE),
    "adjust_saturation": (_BLEND + r",\quad b = L(x)", _NONE),
    "adjust_hue": (r"(h, s, v) \mapsto \big((h + \varphi) \bmod 1,\ s,\ v\big)", _NONE),
    "adjust_gamma": (r"y = \operatorname{clip}(g\, x^\gamma, 0, 1)", _NONE),
    "grayscale": (r"L(x) = 0.299\, r + 0.587\, g + 0.114\, b", _NONE),
    "color_matrix": (r"y_p = A\, x_p + b", _NONE),
    "color_sequence": (
        r"y = (f_{o_K} \circ \dots \circ f_{o_1})(x)",
        "as the steps: only sharpness looks at neighbors",
    ),
    "invert": (r"y = 255 - x\ \text{(uint8)},\quad 1 - x\ \text{(floats)}", _NONE),
    "posterize": (r"y = \lfloor x\, 2^{b} \rfloor\, 2^{-b}", _NONE),
    "solarize": (r"y = x \text{ below the threshold},\ 1 - x \text{ from it on}", _NONE),
    "autocontrast": (r"y = \frac{x - \min x}{\max x - \min x}\ \text{for each channel}", _NONE),
    "equalize": (r"y = T[x],\quad T = \text{PIL's whole-number cumulative histogram}", _NONE),
    "lut": (r"y_{c,p} = T_c[x_{c,p}]", _NONE),
    "gaussian_blur": (
        r"y = g_{\sigma_y} *_y (g_{\sigma_x} *_x x),\quad g_\sigma(t) \propto e^{-t^2/2\sigma^2}",
        "reflect without the border pixel (BORDER_REFLECT_101)",
    ),
    "filter2d": (
        r"y_{i,j} = \sum_{u,v} k_{u,v}\, x_{i+u-\lfloor h/2\rfloor,\, j+v-\lfloor w/2\rfloor}",
        "``border``: constant, edge, reflect, symmetric or wrap",
    ),
    "adjust_sharpness": (
        _BLEND + r",\quad b = \tfrac{1}{13}\begin{bmatrix}1&1&1\\1&5&1\\1&1&1\end{bmatrix} * x",
        "the outermost pixels are not smoothed, as in PIL",
    ),
    "erase": (r"y_p = v_p \text{ inside the box},\ x_p \text{ elsewhere}", "the box is clipped"),
    "blend": (r"y = (1 - w)\, a + w\, b", _NONE),
    "encode_image": (r"\text{bytes} = \operatorname{PIL.save}(x)", _NONE),
    "decode_image": (r"x = \operatorname{PIL.open}(\text{bytes})", _NONE),
}

#: What a transform, or a functional, is made of: the operators that have its formula, border rule and gradient.
MADE_OF: dict[str, tuple[str, ...]] = {
    "CenterCrop": ("crop",),
    "Pad": ("pad",),
    "RandomCrop": ("pad", "crop"),
    "RandomErasing": ("erase",),
    "RandomHorizontalFlip": ("flip",),
    "RandomVerticalFlip": ("flip",),
    "Resize": ("resize",),
    "Grayscale": ("grayscale",),
    "RandomResizedCrop": ("resized_crop",),
    "GaussianBlur": ("gaussian_blur",),
    "RandomAdjustSharpness": ("adjust_sharpness",),
    "RandomAutocontrast": ("autocontrast",),
    "RandomEqualize": ("equalize",),
    "RandomGrayscale": ("adjust_saturation",),
    "RandomInvert": ("invert",),
    "RandomPosterize": ("posterize",),
    "RandomSolarize": ("solarize",),
    "RandomAffine": ("warp_affine",),
    "RandomPerspective": ("warp_perspective",),
    "RandomRotation": ("warp_affine",),
    "ColorJitter": ("color_sequence",),
    "AutoAugment": ("warp_affine", "color_sequence"),
    "RandAugment": ("warp_affine", "color_sequence"),
    "TrivialAugmentWide": ("warp_affine", "color_sequence"),
    "MixUp": ("blend",),
    "CutMix": ("erase",),
    "center_crop": ("crop",),
    "horizontal_flip": ("flip",),
    "vertical_flip": ("flip",),
    "affine": ("warp_affine",),
    "rotate": ("warp_affine",),
    "perspective": ("warp_perspective",),
    "rgb_to_grayscale": ("grayscale",),
    "to_grayscale": ("grayscale",),
    **{n: (n,) for n in ("resize", "crop", "resized_crop", "pad", "erase", "gaussian_blur")},
    **{n: (n,) for n in ("invert", "posterize", "solarize", "autocontrast", "equalize")},
    **{f"adjust_{n}": (f"adjust_{n}",) for n in ("brightness", "contrast", "saturation", "hue", "gamma")},
    "adjust_sharpness": ("adjust_sharpness",),
}
#: Transforms that only apply others, and torchvision's own arithmetic.
NOT_MADE = {
    "Compose",
    "RandomApply",
    "RandomChoice",
    "RandomOrder",
    "ToDtype",
    "ToImage",
    "Normalize",
    "GaussianNoise",
    "to_dtype",
    "normalize",
}
