"""Augment clips of TorchCodec's frames. The frames of a clip share their draws, and each clip has its own.

    pip install ".[examples]" && apt-get install ffmpeg
    python examples/torchcodec_frames.py --steps 2
    python examples/torchcodec_frames.py --steps 2 --video film.mp4

Call imgops on the decoded frames, and do not pass its transforms to ``VideoDecoder(transforms=...)``.
TorchCodec mistakes them for torchvision's, because they are subclasses, and lets FFmpeg resize, with
different pixels. Crops give the same pixels, but ``per_sample`` and ``generator`` are ignored.
"""

import argparse
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from photographs import CLASSES
from torch import Tensor
from torchcodec.decoders import VideoDecoder
from torchcodec.encoders import VideoEncoder
from torchcodec.samplers import clips_at_regular_indices

from imgops import transforms as v2

CLIPS, FRAMES = 3, 8
AUGMENT = v2.Compose(
    [
        v2.RandomResizedCrop(96, scale=(0.3, 1.0)),
        v2.RandomHorizontalFlip(),
        v2.ColorJitter(0.4, 0.4, 0.4),
        v2.ToDtype(torch.float32, scale=True),
    ],
    per_sample=True,
)


def write(path: Path) -> None:
    """Write a video: a window moves over a photograph."""
    photo = torch.from_numpy(CLASSES["cat"]()).permute(2, 0, 1)
    frames = [photo[:, 40:200, 4 * i : 4 * i + 200] for i in range(CLIPS * FRAMES)]
    VideoEncoder(torch.stack(frames), frame_rate=8).to_file(path)


def clips(path: Path) -> Tensor:
    """Return clips that start at regular intervals: uint8 ``(clips, frames, 3, height, width)``."""
    decoder = VideoDecoder(path, dimension_order="NCHW")
    found = clips_at_regular_indices(decoder, num_clips=CLIPS, num_frames_per_clip=FRAMES)
    return found.data


def main(steps: int, video: Path | None) -> None:
    with TemporaryDirectory() as folder:
        path = video or Path(folder, "cat.mp4")
        if video is None:
            write(path)
        frames = clips(path)
    for epoch in range(steps):
        keys = [(epoch, path.name, clip) for clip in range(CLIPS)]
        augmented = v2.seeded(AUGMENT, keys)(frames)
        sums = [zlib.crc32(clip.numpy().tobytes()) for clip in augmented]
        print(f"epoch {epoch}: {tuple(augmented.shape)}, checksums {sums}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=2, help="how many times the clips are augmented")
    parser.add_argument("--video", type=Path, help="a video; without it, a small one is made")
    o = parser.parse_args()
    try:
        main(o.steps, o.video)
    except RuntimeError as error:
        if "Could not load libtorchcodec" not in str(error):
            raise
        message = (
            "TorchCodec cannot load its library: install FFmpeg 4 to 9, and the TorchCodec of your PyTorch"
        )
        raise SystemExit(message) from error
