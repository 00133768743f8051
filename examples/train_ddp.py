"""Train a classifier on several processes. Each augments its batch on its device, image by image.

    pip install ".[examples]"
    python examples/photographs.py photos --count 400 --corrupt 1
    torchrun --standalone --nproc-per-node 2 --max-restarts 3 examples/train_ddp.py photos --epochs 3

An image's draws depend only on its path and the epoch, so two processes see the same images as one, and train
in the same way. The program leaves out files that cannot be decoded, and prints their names. If a process or
one of its workers is killed, torchrun starts all processes again, and they continue after the last saved
step. The processes save every ``--every`` steps.
"""

import argparse
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler
from tqdm import tqdm

import imgops
from imgops import transforms as v2


class Photographs(Dataset[dict[str, Any]]):
    """The decoded photographs, all of one size. The workers do this part."""

    def __init__(self, root: Path, size: int) -> None:
        self.root, self.files = root, sorted(root.glob("*/*.jp*g"))
        self.classes = sorted({file.parent.name for file in self.files})
        self.fit = v2.Compose([v2.Resize(size * 8 // 7), v2.CenterCrop(size * 8 // 7)])

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> dict[str, Any]:
        file = self.files[index]
        key, label = file.relative_to(self.root).as_posix(), self.classes.index(file.parent.name)
        try:
            image = imgops.decode_image(torch.frombuffer(bytearray(file.read_bytes()), dtype=torch.uint8))
        except ValueError as error:
            return {"key": key, "error": str(error)}
        return {"key": key, "image": self.fit(image), "label": label}


def classifier(classes: int) -> nn.Module:
    layers: list[nn.Module] = []
    for before, after in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(before, after, 3, 2, 1), nn.GroupNorm(4, after), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


class Step:
    """A training step. The loss is a sum, so a file that was left out does not change the weights of the
    other files."""

    def __init__(self, model: nn.Module, device: torch.device, size: int, batch: int) -> None:
        self.model, self.device, self.size, self.batch = model, device, size, batch
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        self.augment = v2.Compose(
            [
                v2.RandomResizedCrop(size, scale=(0.5, 1.0)),
                v2.RandomHorizontalFlip(),
                v2.ColorJitter(0.4, 0.4, 0.4, 0.1),
                v2.ToDtype(torch.float32, scale=True),
            ],
            per_sample=True,
        )

    def __call__(self, epoch: int, samples: list[dict[str, Any]]) -> Tensor:
        if samples:
            images = torch.stack([s["image"] for s in samples]).to(self.device, non_blocking=True)
            images = v2.seeded(self.augment, [(epoch, s["key"]) for s in samples])(images)
        else:  # every process must take every step
            images = torch.zeros(0, 3, self.size, self.size, device=self.device)
        labels = torch.tensor([s["label"] for s in samples], dtype=torch.long, device=self.device)
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(images), labels, reduction="sum") / self.batch
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def train(options: argparse.Namespace, rank: int, world: int, device: torch.device) -> None:
    torch.manual_seed(0)
    photographs = Photographs(options.folder, options.size)
    batch = options.batch // world
    model = DistributedDataParallel(classifier(len(photographs.classes)).to(device))
    step = Step(model, device, options.size, batch)
    first, done, bad = 0, 0, {}
    if options.state.exists():
        known = torch.load(options.state, map_location=device)
        model.load_state_dict(known["model"]), step.optimizer.load_state_dict(known["optimizer"])
        first, done, bad = known["epoch"], known["done"], known["bad"]
        if rank == 0:
            print(f"going on in epoch {first} after step {done}", flush=True)
    for epoch in range(first, options.epochs):
        sampler = DistributedSampler(photographs, world, rank, drop_last=True)
        sampler.set_epoch(epoch)
        indices = list(sampler)[done * batch :]
        loader = DataLoader(photographs, batch, sampler=indices, num_workers=options.workers, collate_fn=list)
        start, seen, total = time.perf_counter(), 0, torch.zeros((), device=device)
        bar = tqdm(loader, f"epoch {epoch}", disable=rank > 0, unit="batch")
        for samples in bar:
            good = [s for s in samples if "error" not in s]
            total, seen, done = total + step(epoch, good), seen + len(good), done + 1
            bad |= {s["key"]: s["error"] for s in samples if "error" in s}
            if done % options.every == 0:
                save(options.state, model, step.optimizer, epoch, done, everywhere(bad, world), rank)
        bad, steps, done = everywhere(bad, world), max(len(loader), 1), 0
        numbers = torch.stack([total / steps / world, torch.tensor(float(seen), device=device)])
        dist.all_reduce(numbers)
        save(options.state, model, step.optimizer, epoch + 1, 0, bad, rank)
        if rank == 0:
            loss, images = numbers.tolist()
            rate = images / (time.perf_counter() - start)
            found = f"epoch {epoch}: loss {loss:.5f}, {images:.0f} images, {world} processes"
            print(f"{found}: {rate:.0f} images/s", flush=True)
    if rank == 0:
        for key, error in sorted(bad.items()):
            print(f"left out {key}: {error}")


def everywhere(bad: dict[str, str], world: int) -> dict[str, str]:
    """Return the errors that all processes found."""
    found: list[Any] = [None] * world
    dist.all_gather_object(found, bad)
    return {key: error for each in found for key, error in each.items()}


def save(
    path: Path, model: nn.Module, optimizer: Any, epoch: int, done: int, bad: dict[str, str], rank: int
) -> None:
    if rank == 0:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save({**state, "epoch": epoch, "done": done, "bad": bad}, path.with_suffix(".new"))
        path.with_suffix(".new").replace(path)  # so that the file is always complete


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="a folder of folders of JPEG files, one for each class")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32, help="of all processes together")
    parser.add_argument("--size", type=int, default=112)
    parser.add_argument("--workers", type=int, default=1, help="of each process")
    parser.add_argument("--every", type=int, default=5, help="steps between two states")
    parser.add_argument("--timeout", type=float, default=60, help="seconds to wait for another process")
    parser.add_argument("--state", type=Path, default=Path("ddp.pt"), help="the file to save the state in")
    o = parser.parse_args()
    cuda = torch.cuda.is_available()
    place = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    # After this timeout a process stops waiting for a killed one, and torchrun starts all of them again.
    dist.init_process_group("nccl" if cuda else "gloo", timeout=timedelta(seconds=o.timeout))
    train(o, dist.get_rank(), dist.get_world_size(), place)
    dist.destroy_process_group()
