"""Measure the robustness of a network: its accuracy under each corruption of ImageNet-C, at each severity.

    pip install ".[examples]"
    python examples/corruption_robustness.py --steps 60

A small network learns to classify crops of photographs, with and without augmentation by noise and blur. Then
the sweep ``v2.corruptions`` shows how much accuracy each corruption costs. On one machine, every run gives
the same numbers.
"""

import argparse

import torch
import torch.nn.functional as F
from photographs import CLASSES
from torch import Tensor, nn

from imgops import transforms as v2

SIDE = 48
TO_FLOAT = v2.Compose([v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.25] * 3)])
AUGMENT = v2.Compose(
    [
        v2.RandomApply([v2.Corruption("speckle_noise", 2)], p=0.3),
        v2.RandomApply([v2.Corruption("gaussian_blur", 1)], p=0.3),
        v2.RandomHorizontalFlip(),
    ],
    per_sample=True,
)


def crops(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return parts of photographs ``(count, 3, 48, 48)``, uint8, and their classes."""
    whole = [torch.from_numpy(photo()).permute(2, 0, 1) for photo in CLASSES.values()]
    crop = v2.RandomResizedCrop(SIDE, scale=(0.1, 0.6))
    images = [v2.seeded(crop, seed * count + n)(whole[n % len(whole)]) for n in range(count)]
    return torch.stack(images), torch.arange(count) % len(whole)


def network() -> nn.Module:
    layers: list[nn.Module] = []
    for before, after in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.GroupNorm(4, after), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, len(CLASSES)))


def train(steps: int, augment: bool) -> nn.Module:
    torch.manual_seed(0)
    model, (images, classes) = network(), crops(256, 0)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for _ in range(steps):
        chosen = torch.randint(len(images), (64,))
        batch = AUGMENT(images[chosen]) if augment else images[chosen]
        loss = F.cross_entropy(model(TO_FLOAT(batch)), classes[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


@torch.no_grad()
def accuracy(model: nn.Module, images: Tensor, classes: Tensor) -> float:
    return (model(TO_FLOAT(images)).argmax(1) == classes).float().mean().item()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--images", type=int, default=96)
    options = parser.parse_args()
    images, classes = crops(options.images, 1)
    models = {"plain": train(options.steps, False), "augmented": train(options.steps, True)}
    found: dict[str, dict[str, list[float]]] = {}
    for name, _, batch in v2.corruptions(images, "all"):
        for kind, model in models.items():
            found.setdefault(name, {}).setdefault(kind, []).append(accuracy(model, batch, classes))
    clean = "  ".join(f"{kind} {accuracy(model, images, classes):.1%}" for kind, model in models.items())
    print(f"{'clean':20}{clean}")
    for name, each in found.items():
        shown = (f"{kind} {' '.join(f'{a:4.0%}' for a in values)}" for kind, values in each.items())
        print(f"{name:20}{'   '.join(shown)}")
    for kind in models:
        common = [a for name in v2.Corruption.COMMON for a in found[name][kind]]
        print(f"mean of the benchmark's, {kind}: {sum(common) / len(common):.1%}")


if __name__ == "__main__":
    main()
