"""Augment in the workers of transformers' Trainer, with a key for each image and epoch.

    pip install ".[examples,transformers]"
    python examples/hf_trainer.py --steps 6 --workers 2 --persistent
    torchrun --standalone --nproc-per-node 2 examples/hf_trainer.py --steps 6

An image's draws depend only on its index and the epoch. So the model sees the same images with any number of
workers and processes: compare the checksums, whose sums over the processes are equal.
"""

import argparse
import os
import zlib
from typing import Any

import torch
from photographs import CLASSES
from torch import Tensor, nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments, ViTConfig, ViTForImageClassification

from imgops import transforms as v2

COUNT, BATCH = 24, 8
AUGMENT = v2.Compose(
    [
        v2.RandomResizedCrop(32),
        v2.RandomHorizontalFlip(),
        v2.ColorJitter(0.4, 0.4, 0.4),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.5] * 3, [0.5] * 3),
    ],
    per_sample=True,
)


class Photographs(Dataset[dict[str, Tensor]]):
    """Parts of photographs, augmented with the draws of an epoch, which workers read in shared memory."""

    def __init__(self) -> None:
        whole = [torch.from_numpy(photo()).permute(2, 0, 1) for photo in CLASSES.values()]
        parts = [v2.seeded(v2.RandomCrop(48), n)(whole[n % len(whole)]) for n in range(COUNT)]
        self.images, self.labels = torch.stack(parts), torch.arange(COUNT) % len(whole)
        self.epoch = torch.zeros((), dtype=torch.int64).share_memory_()

    def __len__(self) -> int:
        return COUNT

    def __getitems__(self, indices: list[int]) -> list[dict[str, Tensor]]:
        """Return all images of a batch; DataLoader calls this once per batch."""
        keys = [(int(self.epoch), n) for n in indices]
        images = v2.seeded(AUGMENT, keys)(self.images[indices])
        return [{"pixel_values": x, "labels": self.labels[n]} for x, n in zip(images, indices, strict=True)]


class Epochs(TrainerCallback):
    """Pass each epoch to the dataset, and print a checksum of the images that the model saw in it.

    A method ``set_epoch`` of the dataset would be enough for one process; with several, accelerate does not
    call it.
    """

    def __init__(self, model: nn.Module) -> None:
        model.register_forward_pre_hook(self.see, with_kwargs=True)

    def see(self, model: nn.Module, args: Any, inputs: dict[str, Tensor]) -> None:
        self.seen += [zlib.crc32(image.tobytes()) for image in inputs["pixel_values"].cpu().numpy()]

    def on_epoch_begin(self, args: Any, state: Any, control: Any, train_dataloader: Any, **rest: Any) -> None:
        self.epoch, self.seen = int(state.epoch), []
        train_dataloader.dataset.epoch.fill_(self.epoch)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        print(f"epoch {self.epoch}: {len(self.seen)} images, checksum {sum(self.seen)}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=6, help=f"an epoch has {COUNT // BATCH}")
    parser.add_argument("--workers", type=int, default=2, help="of each process")
    parser.add_argument("--persistent", action="store_true", help="keep the workers from epoch to epoch")
    o = parser.parse_args()
    torch.manual_seed(0)
    small = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    vit = ViTForImageClassification(ViTConfig(image_size=32, patch_size=8, num_labels=len(CLASSES), **small))
    options = TrainingArguments(
        max_steps=o.steps,
        per_device_train_batch_size=BATCH // int(os.environ.get("WORLD_SIZE", 1)),
        dataloader_num_workers=o.workers,
        dataloader_persistent_workers=o.persistent,
        use_cpu=not torch.accelerator.is_available(),
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    Trainer(vit, options, train_dataset=Photographs(), callbacks=[Epochs(vit)]).train()
    print(f"weights {sum(zlib.crc32(p.detach().cpu().numpy().tobytes()) for p in vit.parameters())}")
