"""
Export: the pixels without the library
======================================

Export preprocessing and model as one program, and run it where imgops is not installed.

A server should run exactly the preprocessing that the model was trained with, and should not need Python packages for it.
An exported program keeps each call of imgops as one node. After decomposition it consists of PyTorch's own operators, gives
the same pixels, and runs where imgops is not installed. Pass ``strict=True`` to ``torch.export.export`` if the program takes
tv_tensors, such as boxes: by default PyTorch makes plain tensors of them.
"""

# %%
# A program that takes uint8 images
# ---------------------------------
# This module contains the preprocessing and the model. It turns a photograph into logits.

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from skimage import data
from torch import Tensor, nn

import imgops

photo = torch.from_numpy(data.chelsea()).permute(2, 0, 1).contiguous()


class Served(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layers = nn.Conv2d(3, 8, 5, stride=4), nn.ReLU(), nn.Flatten()
        self.model = nn.Sequential(*layers, nn.LazyLinear(10))

    def preprocess(self, image: Tensor) -> Tensor:
        small = imgops.resize(image, (96, 128), "bicubic")  # PIL's pixels
        return imgops.adjust_contrast(imgops.crop(small, (16, 0, 112, 96)), 1.2)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        view = self.preprocess(image)
        return view, self.model(view.unsqueeze(0).float() / 255)


served = Served().eval()
with torch.no_grad():
    view, logits = served(photo)
figure, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
for ax, shown in zip(axes, (photo, view), strict=True):
    ax.imshow(shown.permute(1, 2, 0))

# %%
# Exported: opaque nodes
# ----------------------

program = torch.export.export(served, (photo,))
names = lambda p: [str(n.target) for n in p.graph.nodes if n.op == "call_function"]
print(
    f"{len(names(program))} nodes, among them:",
    *(n for n in names(program) if n.startswith("imgops")),
    sep="\n  ",
)

# %%
# Decomposed: core ATen
# ---------------------

table = torch.export.default_decompositions() | imgops.decompositions()
whole = program.run_decompositions(table)
left = [n for n in names(whole) if n.startswith("imgops")]
print(f"{len(names(whole))} nodes, {len(left)} of imgops")
again, same = whole.module()(photo)
print(
    "the same pixels:",
    torch.equal(again, view),
    "- the same logits:",
    torch.allclose(same, logits),
)

# %%
# Photographs of every size
# -------------------------
# The program above takes photographs of one size. With ``dynamic_shapes`` the height and the width are symbols, and one program takes
# all sizes. ``export`` asks for an upper bound.

try:
    whole.module()(photo[:, :200])
except Exception as error:
    print(f"{type(error).__name__}: {error}".splitlines()[0])

sizes = {
    1: torch.export.Dim("height", max=16384),
    2: torch.export.Dim("width", max=16384),
}
whole = torch.export.export(
    served, (photo,), dynamic_shapes=(sizes,)
).run_decompositions(table)
for height, width in ((300, 451), (200, 300), (97, 60)):
    other = imgops.crop(photo, (0, 0, width, height))
    equal = torch.equal(whole.module()(other)[0], served.preprocess(other))
    print(f"{height} x {width}: the same pixels: {equal}")

# %%
# Where imgops is not installed
# -----------------------------
# Another process loads the file. An import of imgops would fail in that process.

folder = Path(tempfile.mkdtemp())
torch.export.save(whole, folder / "served.pt2")
torch.save((photo, view, logits), folder / "data.pt")
script = """
import sys, torch
sys.modules["imgops"] = None  # an import raises ImportError
from pathlib import Path
folder = Path(sys.argv[1])
photo, view, logits = torch.load(folder / "data.pt")
program = torch.export.load(folder / "served.pt2").module()
found, scores = program(photo)
print("without imgops: the same pixels:", torch.equal(found, view), "- logits:", torch.allclose(scores, logits))
try:
    import imgops
except ImportError as error:
    print("import imgops:", error)
"""
done = subprocess.run(
    [sys.executable, "-c", script, str(folder)],
    capture_output=True,
    text=True,
    check=True,
    timeout=300,
)
print(done.stdout)

# %%
# Compare the picture that the server computes with the one that it would compute with ``interpolate``:

# sphinx_gallery_thumbnail_number = 2

(other,) = torch.nn.functional.interpolate(
    photo[None].float(), (96, 128), mode="bicubic"
)
other = imgops.crop(other.round().clamp(0, 255).to(torch.uint8), (16, 0, 112, 96))
other = imgops.adjust_contrast(other, 1.2)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.5), layout="constrained")
axes[0].imshow(again.permute(1, 2, 0))
axes[1].imshow(other.permute(1, 2, 0))
shown = axes[2].imshow((again.int() - other.int()).abs().amax(0), cmap="magma")
for ax, title in zip(
    axes, ("exported", "with interpolate", "difference, in levels"), strict=True
):
    ax.set_title(title)
    ax.axis("off")
figure.colorbar(shown, ax=axes[2], shrink=0.8)

# %%
# Ahead of time, or to ONNX
# -------------------------
# AOTInductor compiles the decomposed program to a package for C++
# (``torch._inductor.aoti_compile_and_package(whole)``), and ``torch.onnx`` translates it to ONNX:

try:
    import onnxruntime

    torch.onnx.export(whole, (), folder / "served.onnx", dynamo=True, verbose=False)
    session = onnxruntime.InferenceSession(folder / "served.onnx")
    pixels, _ = session.run(None, {session.get_inputs()[0].name: photo.numpy()})
    print("onnxruntime, the same pixels:", torch.equal(torch.from_numpy(pixels), view))
except ImportError:
    print("install onnxruntime and onnxscript to run this part")
