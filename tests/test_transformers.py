"""Exact processors return what transformers' PIL backend returns, for every model and for every input that it takes."""

from __future__ import annotations

import copy
import functools
import json
import pickle
import re
import subprocess
import sys
import types
import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import imgops

transformers = pytest.importorskip("transformers")

from transformers import (  # noqa: E402
    AutoImageProcessor,
    AutoProcessor,
    AutoVideoProcessor,
    BatchFeature,
    CLIPImageProcessor,
    CLIPImageProcessorPil,
    CLIPProcessor,
    DetrImageProcessor,
    LlavaOnevisionVideoProcessor,
    MobileViTImageProcessor,
    NougatImageProcessor,
    Qwen2VLImageProcessor,
    SiglipImageProcessor,
)
from transformers.image_processing_backends import PilBackend, TorchvisionBackend  # noqa: E402
from transformers.video_processing_utils import BaseVideoProcessor  # noqa: E402

from imgops.integrations.transformers import _pixels, _registration, exact, register  # noqa: E402
from tests import processors  # noqa: E402
from tests.image_forms import FORMS, LAYOUTS  # noqa: E402
from tests.processors import KINDS, assert_close, distinction, photo, result  # noqa: E402
from tests.tiers import every_night, nightly, nightly_unless  # noqa: E402

transformers.logging.set_verbosity_error()

#: Before 5.21 their PIL backend alone filled the margin with another color.
OTHER_MARGIN = (
    ("DeepseekVLImageProcessor", "JanusImageProcessor")
    if tuple(map(int, transformers.__version__.split(".")[:2])) < (5, 21)
    else ()
)

TWINS = [name for name, (_, twin) in processors.classes().items() if twin]
ALONE = [name for name, (_, twin) in processors.classes().items() if not twin]


def both(name: str) -> tuple[Any, Any]:
    """Return an exact processor, and that of the PIL backend."""
    kind, twin = processors.classes()[name]
    given = processors.MADE_WITH.get(name, {})
    return exact(kind(**given)), twin and twin(**given)


def compare(name: str, images: Any, made: tuple[Any, Any] | None = None, **how: Any) -> None:
    """Check that an exact processor returns what the PIL backend returns, if that takes the images."""
    ours, theirs = made or both(name)
    try:
        wanted = result(theirs, name, images, **how)
    except Exception:
        return
    assert_close(result(ours, name, images, **how), wanted)


#: Kinds of inputs, and settings of a call that the two backends of transformers may read differently.
CALLS: list[tuple[Any, dict[str, Any]]] = [(make, {}) for make in KINDS.values()]
CALLS += [(lambda: photo(60, 80), how) for how in ({"resample": 0}, {"resample": 4}, {"do_pad": True})]
OFTEN = ("DPTImageProcessor", "DonutImageProcessor", "JanusImageProcessor")


@pytest.mark.parametrize(
    "name",
    nightly_unless(
        lambda name: TWINS.index(name) % 8 == 0 or name in OFTEN,
        [name for name in TWINS if name not in OTHER_MARGIN],
    ),
)
def test_it_is_the_pil_backend(name: str, whole: bool) -> None:
    """Some classes with one of the inputs; nightly all with all of them."""
    turn = TWINS.index(name) % len(CALLS)
    for make, how in CALLS if whole else [CALLS[turn], *(CALLS[-3:] if name in OFTEN else ())]:
        compare(name, make(), **how)


#: Steps that may be left out of a call, and the classes whose code for tensors then loses the images.
LEFT_OUT = [
    dict.fromkeys(names, False) for names in ((), ("do_resize",), ("do_pad",), ("do_resize", "do_pad"))
]
LOSES = ("DeepseekVLHybridImageProcessor", "Owlv2ImageProcessor", "ViltImageProcessor")
#: Fuyu pads to a size that its images have only after the resize.
STACKS = "stack expects each tensor to be equal size|Padding dimensions are negative"


@pytest.mark.parametrize("name", nightly_unless((LOSES[-1], "CLIPImageProcessor").__contains__, TWINS))
def test_images_of_several_sizes_with_steps_left_out(name: str) -> None:
    """They are those of the PIL backend, unless a model's code stacks images of different sizes, which raises."""
    ours, theirs = processors.small(name)
    for how in LEFT_OUT:
        try:
            compare(name, [photo(60, 44), photo(33, 60), photo(60, 44)], (exact(ours), theirs), **how)
        except Exception as error:
            if not how or name in LOSES or not re.search(STACKS, str(error)):
                raise


#: Forms that differ for other reasons than pixels, by their beginning: code of the model stacks images of
#: different channels or numbers, takes the labels of one image for a batch, or multiplies NaN by zero.
KNOWN: dict[str, tuple[str, ...]] = {
    "EfficientLoFTRImageProcessor": ("PIL of three modes",),
    "FuyuImageProcessor": ("PIL of three modes", "PIL nested", "nested", "list of batches"),
    "LightGlueImageProcessor": ("PIL of three modes",),
    "Owlv2ImageProcessor": ("array nan", "array inf"),
    "Pix2StructImageProcessor": ("array float16 of levels",),  # whose squares NumPy adds up as float16
    "RTDetrImageProcessor": ("PIL of three modes",),
    "SuperGlueImageProcessor": ("PIL of three modes",),
    "VitMatteImageProcessor": ("tensor batch",),
    "VitPoseImageProcessor": ("array 1x1", "tensor 1x1"),
}
#: Their PIL backend loses the number of channels, or hands arrays to PyTorch or OpenCV, which do not take all.
NARROW = ("Fuyu", "Kosmos2_5", "Mask2Former", "MaskFormer", "Pix2Struct", "VitPose")
#: The forms that NumPy has not, which the PIL backend refuses, and images without pixels, which PIL resizes.
NOT_OF_NUMPY, EMPTY = ("tensor bfloat16", "tensor negated"), ("array 0x27",)
SETTINGS: dict[str, dict[str, Any]] = {
    "all": {},
    "no resize": {"do_resize": False},
    "no rescale": {"do_rescale": False},
    "no normalization": {"do_normalize": False},
    "nothing": {"do_resize": False, "do_rescale": False, "do_normalize": False},
    "tensors": {"return_tensors": "pt"},
}


def outcome(processor: Any, name: str, form: str, **settings: Any) -> Any:
    """Return the result for a form; None if it is refused."""
    try:
        return result(processor, name, FORMS[form](), **settings)
    except Exception:
        return None


def distinctions(name: str, **settings: Any) -> dict[str, str]:
    """Return each form for which a processor and that of the PIL backend differ, and how they do.

    CLIP's takes all forms, the others the even or the odd ones in turn.
    """
    ours, theirs = processors.small(name)
    ours, found = exact(ours), {}
    forms = [form for form in FORMS if form not in (*NOT_OF_NUMPY, *EMPTY)]
    for form in forms if name == "CLIPImageProcessor" else forms[TWINS.index(name) % 2 :: 2]:
        wanted, returned = (outcome(p, name, form, **settings) for p in (theirs, ours))
        if wanted is None or returned is None:
            said = "" if wanted is returned else "is taken" if wanted is None else "is refused"
        else:
            said = distinction(returned, wanted)
        if said:
            found[form] = said
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "settings"),
    nightly_unless(
        ("CLIPImageProcessor", "all").__eq__,
        [
            *((name, "all") for name in TWINS),
            *product(("ViTImageProcessor", "CLIPImageProcessor"), list(SETTINGS)[1:]),
        ],
    ),
)
def test_every_form_of_an_image(name: str, settings: str) -> None:
    """A processor takes what the PIL backend takes, refuses what it refuses, and returns the same."""
    found = distinctions(name, **SETTINGS[settings])
    found = {k: v for k, v in found.items() if not k.startswith(KNOWN.get(name, ()))}
    if name.removesuffix("ImageProcessor") in NARROW:
        found = {form: said for form, said in found.items() if said != "is taken"}
    assert found == {}


def test_most_classes_have_a_twin() -> None:
    assert len(TWINS) >= 90 and len(ALONE) >= 30


@pytest.mark.parametrize("name", nightly_unless(lambda name: ALONE.index(name) % 10 == 0, ALONE))
def test_it_is_the_class_whose_resize_is_pils(name: str) -> None:
    processor: Any = processors.classes()[name][0]()
    with processors.resized_by_pil():
        wanted = result(processor, name, photo(333, 207))
    assert_close(result(both(name)[0], name, photo(333, 207)), wanted)


def video_classes() -> list[Any]:
    paths = sorted((Path(transformers.__file__).parent / "models").glob("*/video_processing_*.py"))
    modules = [import_module(f"transformers.models.{path.parent.name}.{path.stem}") for path in paths]
    found = [(module, value) for module in modules for value in vars(module).values()]
    found = [(m, v) for m, v in found if isinstance(v, type) and v.__module__ == m.__name__]
    return [value for _, value in found if issubclass(value, BaseVideoProcessor)]


VIDEOS_MADE_WITH: dict[str, dict[str, Any]] = {
    "Ernie4_5_VLMoeVideoProcessor": {"draw_on_frames": False},  # it would load a font
    "NemotronH_Omni_Reasoning_V3VideoProcessor": {"norm_mean": [0.5] * 3, "norm_std": [0.5] * 3},
}


@pytest.mark.parametrize(
    "kind",
    nightly_unless(lambda kind: "Llava" in kind.__name__, video_classes()),
    ids=lambda kind: kind.__name__,
)
def test_videos(kind: Any) -> None:
    frames = [torch.from_numpy(np.roll(np.array(photo(121, 160)), 3 * i, 1)) for i in range(8)]
    video = torch.stack(frames).permute(0, 3, 1, 2)
    metadata = [{"total_num_frames": 8, "fps": 4.0, "duration": 2.0, "frames_indices": list(range(8))}]
    how: dict[str, Any] = {"return_tensors": "pt", "video_metadata": metadata, "do_sample_frames": False}
    processor = kind(**VIDEOS_MADE_WITH.get(kind.__name__, {}))
    with processors.resized_by_pil():
        wanted = processor(video.clone(), **how)
    assert_close(exact(processor)(video.clone(), **how), wanted)


def photographs(count: int = 8) -> list[Any]:
    return [photo(802, 1024)] * count


@pytest.mark.parametrize("kind", [DetrImageProcessor, Qwen2VLImageProcessor, CLIPImageProcessor])
def test_a_joined_batch_has_its_own_memory_alone(kind: Any) -> None:
    """What is sent to another process is the storage of a tensor."""
    values = exact(kind())(photographs(), return_tensors="pt").pixel_values
    assert values.untyped_storage().nbytes() == values.numel() * 4
    assert values.is_contiguous()
    each = exact(kind())(photographs(2)).pixel_values
    if kind is not Qwen2VLImageProcessor:
        assert torch.equal(torch.as_tensor(each[0]), values.view(8, *each[0].shape)[0])


@pytest.mark.parametrize("form", ["array uint8, first", "array uint8, last", "tensor uint8", "PIL RGB"])
@pytest.mark.parametrize(
    "name", ["ViTImageProcessor", *every_night("SegformerImageProcessor", "Mask2FormerImageProcessor")]
)
def test_no_result_shares_memory(name: str, form: str) -> None:
    """Nor with another image of the call, nor with the image that nothing changes."""
    processor = exact(processors.classes()[name][0]())
    images = [FORMS[form](), FORMS[form]()]
    for how in ({}, dict.fromkeys(("do_resize", "do_rescale", "do_normalize", "do_pad"), False)):
        for tensors in (None, "pt"):
            wanted = copy.deepcopy(images)
            found = processor(images, return_tensors=tensors, **how).pixel_values
            kept = found[1].clone()
            found[0].fill_(7)
            assert torch.equal(found[1], kept)
            for image, before in zip(images, wanted, strict=True):
                assert np.array_equal(np.asarray(image), np.asarray(before))


def test_threads_and_later_calls() -> None:
    """No call writes to the result of another, before or beside it."""
    processor = exact(DetrImageProcessor())
    first = processor(photographs(3), return_tensors="pt").pixel_values
    wanted = first.clone()
    processor([photo(300, 310)] * 2, return_tensors="pt").pixel_values.zero_()
    assert torch.equal(first, wanted)
    with ThreadPoolExecutor(4) as pool:
        call = lambda _: processor(photographs(3), return_tensors="pt").pixel_values
        assert all(torch.equal(found, wanted) for found in pool.map(call, range(8)))


def test_images_of_several_sizes_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a device all images of a batch are resized together; here the CPU stands in its place."""
    images, processor = KINDS["sizes"](), exact(SiglipImageProcessor())
    wanted = processor(images, return_tensors="pt").pixel_values
    calls = []
    real = imgops.resize
    monkeypatch.setattr(_pixels, "_is_shared", lambda device: True)
    monkeypatch.setattr(
        imgops, "resize", lambda image, *args, **how: calls.append(type(image)) or real(image, *args, **how)
    )
    found = processor(images, return_tensors="pt").pixel_values
    assert calls == [imgops.PackedImages]
    assert torch.equal(found, wanted)


def test_files_and_packed_images() -> None:
    """A batch of files, or of images of different sizes, gives what a list of its images gives."""
    exact_one = exact(CLIPImageProcessor())
    sizes = ((300, 500), (800, 400), (241, 281))
    images = [torch.randint(0, 256, (3, *size), dtype=torch.uint8) for size in sizes]
    files = imgops.EncodedImages([imgops.encode_image(x) for x in images])
    wanted = exact_one(files.decode().unpack(), return_tensors="pt")["pixel_values"]
    for batch in (files, files.decode()):
        assert torch.equal(exact_one(batch, return_tensors="pt")["pixel_values"], wanted)
        assert torch.equal(exact_one(images=batch, return_tensors="pt")["pixel_values"], wanted)


@pytest.fixture
def registered() -> Any:
    """Register the backend, and take it back."""
    loaders = {loader: loader.__dict__["from_pretrained"] for loader in _registration._LOADERS}
    register()
    yield
    for loader, original in loaders.items():
        loader.from_pretrained = original
    _registration._State.takes_backend = _registration._State.is_default = False


@pytest.mark.usefixtures("registered")
def test_loaders(tmp_path: Path) -> None:
    CLIPImageProcessor(size={"shortest_edge": 100}).save_pretrained(tmp_path)
    image = KINDS["array"]()
    processor = AutoImageProcessor.from_pretrained(tmp_path, backend="imgops")
    assert processor.backend == "imgops" and isinstance(processor, CLIPImageProcessor)
    wanted = AutoImageProcessor.from_pretrained(tmp_path, backend="pil")(image).pixel_values
    assert_close(processor(image).pixel_values, wanted)
    assert AutoImageProcessor.from_pretrained(tmp_path).backend == "torchvision"

    register(default=True)
    assert AutoImageProcessor.from_pretrained(tmp_path).backend == "imgops"
    assert AutoImageProcessor.from_pretrained(tmp_path, backend="pil").backend == "pil"
    register()
    assert AutoImageProcessor.from_pretrained(tmp_path).backend == "torchvision"

    LlavaOnevisionVideoProcessor().save_pretrained(tmp_path / "video")
    assert AutoVideoProcessor.from_pretrained(tmp_path / "video", backend="imgops").backend == "imgops"


def whole_processor(folder: Path) -> Any:
    """Return a processor of images and texts, whose tokenizer is made here."""
    from transformers import CLIPTokenizer

    words = ["<|startoftext|>", "<|endoftext|>", "a</w>", "cat</w>"]
    (folder / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    tokenizer = CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))
    return CLIPProcessor(CLIPImageProcessorPil(), tokenizer)


@pytest.mark.usefixtures("registered")
def test_processors_of_several_kinds_of_inputs(tmp_path: Path) -> None:
    whole = whole_processor(tmp_path)
    image = photo(121, 160)
    wanted = whole(text="a cat", images=image, return_tensors="pt")
    found = exact(whole)(text="a cat", images=image, return_tensors="pt")
    assert_close(found, wanted)
    assert isinstance(whole.image_processor, CLIPImageProcessorPil)  # a copy was changed
    whole.save_pretrained(tmp_path / "saved")
    loaded = AutoProcessor.from_pretrained(tmp_path / "saved", backend="imgops")
    assert loaded.image_processor.backend == "imgops"
    assert_close(loaded(text="a cat", images=image, return_tensors="pt"), wanted)


def test_a_saved_processor_has_the_models_name(tmp_path: Path) -> None:
    exact(CLIPImageProcessor(do_center_crop=False)).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "preprocessor_config.json").read_text())
    assert config["image_processor_type"] == "CLIPImageProcessor"
    loaded = AutoImageProcessor.from_pretrained(tmp_path)
    assert type(loaded) is CLIPImageProcessor and not loaded.do_center_crop


@pytest.mark.parametrize("kind", [CLIPImageProcessor, CLIPImageProcessorPil, LlavaOnevisionVideoProcessor])
def test_copies(kind: Any) -> None:
    processor = exact(kind())
    assert exact(processor) is processor
    for other in (copy.copy(processor), copy.deepcopy(processor), pickle.loads(pickle.dumps(processor))):
        assert type(other) is type(processor)
        assert other.to_dict() == processor.to_dict()


def test_settings_stay() -> None:
    sizes: dict[str, Any] = {"size": {"shortest_edge": 50}, "crop_size": {"height": 40, "width": 45}}
    processor = CLIPImageProcessorPil(**sizes, do_normalize=False)
    assert exact(processor)(photo(121, 160), return_tensors="pt").pixel_values.shape == (1, 3, 40, 45)
    assert isinstance(exact(processor)(photo(121, 160)), BatchFeature)


def test_what_is_no_processor() -> None:
    for value in (3, CLIPImageProcessor, "clip"):
        with pytest.raises(TypeError, match="exact: processor must be an image, video or multimodal"):
            exact(value)
    with pytest.raises(TypeError, match="register: default must be True or False, got int"):
        register(default=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="resize: size must have height and width"):
        exact(CLIPImageProcessor())(photo(121, 160), size={"longest_edge": 5})


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)


@nightly
def test_other_versions_and_none() -> None:
    """One process: an import of imgops does not import transformers, and every failed import says what is missing."""
    program = """
import sys, types, imgops
assert "transformers" not in sys.modules
for version in ("4.57.1", "5.15.0", "6.0.0", None):
    if version:
        sys.modules["transformers"] = types.ModuleType("transformers")
        sys.modules["transformers"].__version__ = version
    else:
        sys.modules["transformers"] = None
    try:
        import imgops.integrations.transformers
    except ImportError as error:
        print(error)
"""
    found = run(program)
    *others, none = found.stdout.splitlines()
    for line, version in zip(others, ("4.57.1", "5.15.0", "6.0.0"), strict=True):
        assert line.endswith(
            f"transformers must be from 5.19 on, below 6 (imgops[transformers]), got {version}"
        )
    assert "transformers must be installed (imgops[transformers]), got" in none
    assert not found.returncode


def test_gradients_of_images() -> None:
    image = torch.rand(3, 60, 80, requires_grad=True)
    sizes: dict[str, Any] = {"size": {"shortest_edge": 30}, "crop_size": {"height": 24, "width": 24}}
    processor = exact(CLIPImageProcessor(**sizes, do_rescale=False))
    out = processor(image, return_tensors="pt").pixel_values
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(0))
    (grad,) = torch.autograd.grad((out * weights).sum(), image)
    mean, std = (torch.tensor(x)[:, None, None] for x in (processor.image_mean, processor.image_std))

    def by_hand(x: Tensor) -> Tensor:
        small = imgops.resize(x, (30, 40), "bicubic", antialias=True)
        return (((small[:, 3:27, 8:32] - mean) / std) * weights).sum()

    (wanted,) = torch.autograd.grad(by_hand(image), image)
    assert torch.allclose(grad, wanted, atol=1e-6)
    assert grad.abs().sum() > 0


@nightly
@pytest.mark.parametrize("name", processors.classes())
def test_graphs(name: str) -> None:
    """It compiles where the backend of torchvision does, with that backend's breaks."""
    image = KINDS["tensor"]()
    kind: Any = processors.classes()[name][0]
    made = kind(**processors.MADE_WITH.get(name, {}))

    def compiled(processor: Any) -> Any:
        torch._dynamo.reset()
        return torch.compile(lambda x: processor(x, return_tensors="pt"), backend="eager")(image)

    try:
        returned = compiled(exact(made))
    except Exception:
        with pytest.raises(Exception):  # noqa: B017
            compiled(made)
        pytest.skip("the backend of torchvision does not compile")
    assert_close(returned, exact(made)(image, return_tensors="pt"))


# -- what was found ------------------------------------------------------------------------------------

GAIN = 1.0


class WithGain(CLIPImageProcessor):
    """A user's processor, whose module changes after it was made exact."""

    def rescale_and_normalize(self, *args: Any, **keywords: Any) -> Any:
        return GAIN * super().rescale_and_normalize(*args, **keywords)


def test_a_users_module_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    processor, image = exact(WithGain()), KINDS["tensor"]()
    once = processor(image, return_tensors="pt").pixel_values
    monkeypatch.setattr(sys.modules[__name__], "GAIN", 3.0)
    assert torch.equal(processor(image, return_tensors="pt").pixel_values, 3 * once)
    floats = KINDS["floats"]()
    wanted = exact(CLIPImageProcessor())(floats, do_rescale=False, return_tensors="pt").pixel_values
    assert torch.equal(processor(floats, do_rescale=False, return_tensors="pt").pixel_values, 3 * wanted)


@pytest.mark.usefixtures("registered")
def test_remote_code_is_saved_with_its_own_code(tmp_path: Path) -> None:
    code = "from transformers import CLIPImageProcessor\nclass Remote(CLIPImageProcessor):\n    pass\n"
    (tmp_path / "image_processing_remote.py").write_text(code)
    name = "image_processing_remote.Remote"
    config = {"image_processor_type": "Remote", "auto_map": {"AutoImageProcessor": name}}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(config))
    how: dict[str, Any] = {"trust_remote_code": True}
    processor = AutoImageProcessor.from_pretrained(tmp_path, backend="imgops", **how)
    processor.save_pretrained(tmp_path / "saved")
    assert (tmp_path / "saved" / "image_processing_remote.py").read_text() == code
    assert type(AutoImageProcessor.from_pretrained(tmp_path / "saved", **how)).__name__ == "Remote"
    register(default=True)
    free = AutoImageProcessor.from_pretrained(tmp_path, backend=None, use_fast=None, **how)
    assert free.backend == "imgops"
    both = AutoImageProcessor.from_pretrained(tmp_path, return_unused_kwargs=True, unknown=3, **how)
    assert both[0].backend == "imgops" and both[1] == {"unknown": 3}


LEVELS = np.array(photo(121, 160))
SMALL: dict[str, Any] = {"size": {"height": 30, "width": 24}}
#: Class, its settings, images and the settings of a call.
FOUND: list[tuple[str, dict[str, Any], Any, dict[str, Any]]] = [
    *(  # dtypes of maps of labels
        (f"{name}ImageProcessor", {}, LEVELS // 3, {"segmentation_maps": (LEVELS[..., 0] // 3 % 9).astype(dtype)})
        for name, dtype in product(("Beit", "DPT"), (np.int64, np.int32, bool))
    ),
    *(  # floats of a group, which are judged one by one
        ("CLIPImageProcessor", {}, [image.astype(np.float32), (LEVELS / 255).astype(np.float32)], {"do_rescale": how})
        for image, how in ((LEVELS > 128, False), (LEVELS, True))
    ),
    *(  # strips, which PIL reduces before a thumbnail: of levels, of floats, and in one call with others
        ("NougatImageProcessor", SMALL, images, {})
        for strip in (photo(20, 400), photo(700, 50))
        for images in (strip, np.array(strip) / 255, [strip, photo(30, 24)])
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "settings", "images", "how"), FOUND)
def test_what_was_found(name: str, settings: dict[str, Any], images: Any, how: dict[str, Any]) -> None:
    kind, twin = processors.classes()[name]
    assert twin is not None
    found = exact(kind(**settings))(images, disable_grouping=False, **how)
    assert_close(found, twin(**settings)(images, **how))


def test_errors_of_calls() -> None:
    processor, image = exact(CLIPImageProcessor()), KINDS["array"]()
    with pytest.raises(ValueError, match="resize: image must have values from 0 to 255, got 0 to 2"):
        processor(image.astype(np.int64) * 10)
    with pytest.raises(ValueError, match="normalize: mean must have a value for each of 3 channels, got 1"):
        processor(image, image_mean=[0.5])
    by_name = processor(image, resample="bilinear", return_tensors="pt").pixel_values
    assert torch.equal(by_name, processor(image, resample=2, return_tensors="pt").pixel_values)


class OwnNougat(NougatImageProcessor):
    """A user's class of a model whose methods are replaced."""


class OwnMobileViT(MobileViTImageProcessor):
    """Another one."""


@pytest.mark.parametrize("kind", [OwnNougat, OwnMobileViT])
def test_a_users_class_has_the_replaced_methods(kind: Any) -> None:
    found, wanted = exact(kind())(photo(121, 160)), exact(kind.__bases__[0]())(photo(121, 160))
    assert_close(found, wanted, 0)


# -- a user's code --------------------------------------------------------------------------------------

#: The methods of transformers' backends that a user may override; the rest of each is a constructor.
METHODS = {
    base: sorted(
        {
            name
            for cls in (base, *base.__mro__)
            if cls.__module__.startswith("transformers.image_processing")
            for name, value in vars(cls).items()
            if isinstance(value, types.FunctionType) and name not in ("__init__", "__repr__")
        }
    )
    for base in (PilBackend, TorchvisionBackend)
}


def overridden(kind: Any, name: str, where: str, patch: pytest.MonkeyPatch) -> tuple[Any, list[str]]:
    """Return a processor with a user's method, in a subclass, on the object or on transformers' class, and its calls."""
    usual, calls = getattr(kind, name), list[str]()

    def noted(*args: Any, **keywords: Any) -> Any:
        calls.append(name)
        return usual(*args, **keywords)

    if where == "class":
        patch.setattr(kind, name, noted, raising=False)
    processor = type(kind.__name__, (kind,), {name: noted})() if where == "subclass" else kind()
    if where == "object":
        processor.__dict__[name] = functools.partial(noted, processor)
    return processor, calls


@pytest.mark.parametrize("where", ["subclass", *every_night("object", "class")])
@pytest.mark.parametrize("name", METHODS[TorchvisionBackend])
def test_methods_of_a_user_are_called(name: str, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is called where it is without imgops."""
    exact(CLIPImageProcessor())  # a class that is made before does not count
    processor, calls = overridden(CLIPImageProcessor, name, where, monkeypatch)
    converted = exact(processor)
    levels = torch.zeros(3, 9, 12, dtype=torch.uint8)
    sizes: dict[str, Any] = {"size": {"height": 8, "width": 7}, "crop_size": {"height": 6, "width": 6}}
    for images in ([levels, levels[:, 1:]], torch.zeros(1, 9, 12)):
        for how in ({}, {"do_normalize": False}, {"do_rescale": False}):
            given = {"return_tensors": "pt", "do_convert_rgb": True, **sizes, **how}
            calls.clear()
            processor(images, **given)
            wanted = bool(calls)
            calls.clear()
            converted(images, **given)
            assert bool(calls) >= wanted, (given, images)


@pytest.mark.parametrize("where", [*every_night("subclass", "class"), "object"])
@pytest.mark.parametrize("name", METHODS[PilBackend])
def test_methods_of_a_user_on_arrays_are_refused(
    name: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    processor, _ = overridden(CLIPImageProcessorPil, name, where, monkeypatch)
    with pytest.raises(TypeError, match="exact: processor of the PIL backend must be of transformers' own"):
        exact(processor)


def test_a_replaced_method_of_the_backend_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TorchvisionBackend, "resize", lambda self, image, *args, **keywords: image)
    with pytest.raises(TypeError, match="exact: methods of transformers' TorchvisionBackend must be its own"):
        exact(CLIPImageProcessor())


@pytest.mark.parametrize(
    "form", ["array uint8, read-only", "array float32, read-only", "PIL RGB", "PIL of a JPEG"]
)
def test_no_warning(form: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exact(CLIPImageProcessor())(FORMS[form](), return_tensors="pt")


@pytest.mark.parametrize("layout", ["reversed rows", "big-endian", "read-only", "every second"])
def test_layouts_of_videos(layout: str) -> None:
    frames = np.stack([np.roll(np.array(photo(60, 80)), 3 * i, 1) for i in range(4)])
    how: dict[str, Any] = {"do_sample_frames": False, "return_tensors": "pt"}
    processor = exact(LlavaOnevisionVideoProcessor())
    wanted = processor(LAYOUTS[layout](frames).astype(np.uint8).copy(), **how)
    assert_close(processor(LAYOUTS[layout](frames), **how), wanted, 0)
