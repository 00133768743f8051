"""What docs/migrating/torchcodec.rst says of the images of TorchCodec and torchvision.io, next to those of imgops."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
from PIL import Image
from torch import Tensor

import imgops
from tests.files import oriented, saved, tensor

torchcodec = pytest.importorskip("torchcodec", exc_type=Exception)
decoders = pytest.importorskip("torchcodec.decoders", exc_type=Exception)
if not hasattr(decoders, "decode_image"):
    pytest.skip("TorchCodec decodes images from 0.16 on", allow_module_level=True)


@pytest.fixture
def picture(photograph: Tensor) -> Image.Image:
    return Image.fromarray(photograph[:, :90, :120].permute(1, 2, 0).contiguous().numpy())


def test_pixels_orientation_and_modes(picture: Image.Image) -> None:
    for format in ("JPEG", "PNG", "WEBP"):
        data = saved(picture, format, exif=oriented(6))
        wanted = decoders.decode_image(data)
        assert wanted.shape == (3, 120, 90) and imgops.decode_image(data).shape == (3, 90, 120)
        assert torch.equal(imgops.decode_image(data, apply_exif_orientation=True), wanted), format
    names = {"RGB": 0, "GRAY": 1, "GRAY_ALPHA": 1, "RGB_ALPHA": 0, "UNCHANGED": 0}
    for mode in ("RGB", "L", "LA", "RGBA"):
        data = saved(picture.convert(mode))
        for name, levels in names.items():
            wanted, found = decoders.decode_image(data, mode=name), imgops.decode_image(data, name)
            torch.testing.assert_close(found, wanted, rtol=0, atol=levels)
    jpeg = saved(picture, "JPEG", quality=90)
    gray = decoders.decode_image(jpeg, mode="GRAY").int() - imgops.decode_image(jpeg, "L").int()
    assert 0 < gray.abs().max() <= 8
    assert len(decoders.decode_image(saved(picture.convert("L")))) == 3
    scan = torch.randint(0, 65536, (3, 8, 9), dtype=torch.int32).to(torch.uint16)
    data = imgops.encode_image(scan, "png")
    assert torch.equal(decoders.decode_image(data, mode="UNCHANGED", output_dtype="auto"), scan)
    assert torch.equal(imgops.decode_image(data, "unchanged"), scan)


def test_errors_animations_and_encoders(picture: Image.Image, photograph: Tensor) -> None:
    from torchcodec.encoders import JpegEncoder, PngEncoder

    for data in (saved(picture, "JPEG")[:2000], b"no image"):
        with pytest.raises((RuntimeError, ValueError)):
            decoders.decode_image(data)
        with pytest.raises(ValueError, match=r"^decode_image: "):
            imgops.decode_image(data)
    animation = saved(picture, "WEBP", save_all=True, append_images=[picture.rotate(180)], lossless=True)
    assert decoders.decode_image(animation).shape == (2, 3, 90, 120)
    assert torch.equal(imgops.decode_image(animation), decoders.decode_image(animation)[0])
    image = photograph[:, :90, :120].contiguous()
    assert torch.equal(imgops.decode_image(PngEncoder(image).to_tensor()), image)
    assert JpegEncoder(image).to_tensor(quality=90)[:3].tolist() == [0xFF, 0xD8, 0xFF]


def test_torchvision_deprecates_its_codecs(picture: Image.Image) -> None:
    import torchvision
    from torchvision.io import decode_image

    decode: Callable[..., Tensor] = decode_image
    data = tensor(saved(picture.convert("L")))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert decode(data).shape == (1, 90, 120)
    version = tuple(int(n) for n in torchvision.__version__.split(".")[:2])
    assert any("TorchCodec" in str(w.message) for w in caught) == (version >= (0, 29))
