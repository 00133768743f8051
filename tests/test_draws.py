"""Draws by native code: the numbers of torchvision's code, and the generator's state after it, bit for bit."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

import imgops
from imgops import transforms as ours
from imgops._common import compare
from imgops.transforms._core import draws, programs, seeding
from imgops.transforms._core.base import RandomTransform
from tests import fuzz_draws
from tests.added_cases import JOINING, ROWS
from tests.fuzz_draws import Fake, words_of
from tests.transform_cases import CASES, containers, picture

native = pytest.mark.needs("draws")
pytestmark = native

#: The transforms that draw by a rule in every case of the tables.
RULED = {
    *("RandomHorizontalFlip", "RandomVerticalFlip", "RandomCrop", "RandomResizedCrop", "ColorJitter"),
    *("RandomGrayscale", "RandomInvert", "RandomPosterize", "RandomSolarize", "RandomAutocontrast"),
    *("RandomEqualize", "RandomAdjustSharpness", "GaussianBlur", "RandomAffine"),
    *("RandomPerspective", "RandomPhotometricDistort", "RandomChannelPermutation", "TrivialAugmentWide"),
    *("RandAugment", "RandomRotate90", "RandomRGBShift", "RandomHSV", "RandomMedianBlur"),
    *("AutoAugment", "RandomGamma", "RandomBrightnessContrast", "RandomElastic", "RandomOpticalDistortion"),
}
_KNOWN = {**{str(c): c for c in CASES}, **{str(r): r for r in ROWS}}
#: What makes each transform that draws numbers.
MAKERS: dict[str, Callable[..., Any]] = {
    name: lambda case=case, **more: getattr(ours, case.name)(**{**case.options, **more})  # type: ignore[misc]
    for name, case in _KNOWN.items()
    if case.name not in JOINING and hasattr(getattr(ours, case.name), "_draw_row")
}


def by_python() -> Any:
    """Return a context in which torchvision's code draws."""
    return patch.object(draws, "can_draw", lambda: False)


def states() -> Iterator[Tensor]:
    """Yield states of a generator: new ones, near the end of its words, and with a number of a normal pair."""
    for seed in range(12):
        generator = torch.Generator().manual_seed(seed)
        if seed:
            for _ in range((seed * 101) % 619 if seed % 2 else 624 - seed // 2):
                torch.rand(1, generator=generator)
        if seed % 3 == 0:
            torch.randn(1, generator=generator)  # which keeps the second number of its pair
            torch.randn(1, generator=generator, dtype=torch.float64)
        yield generator.get_state()


def drawn(make: Callable[[], Any], state: Tensor) -> tuple[Any, Tensor]:
    torch.set_rng_state(state)
    out = make()
    return out, torch.get_rng_state()


def same(found: Any, wanted: Any) -> bool:
    """Return whether two results are equal, of equal types."""
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(same(found[k], v) for k, v in wanted.items())
    if isinstance(wanted, (list, tuple)):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(wanted, Tensor):
        return type(found) is type(wanted) and found.dtype == wanted.dtype and torch.equal(found, wanted)
    if hasattr(wanted, "numbers"):
        return same(found.numbers, wanted.numbers)
    return type(found) is type(wanted) and found == wanted


def images(count: int = 5) -> Tensor:
    return torch.stack([picture(height=40, width=40, seed=i) for i in range(count)])


def check(sample: Callable[[], Any]) -> None:
    for state in states():
        found, after = drawn(sample, state)
        with by_python():
            wanted, after_wanted = drawn(sample, state)
        assert same(found, wanted)
        assert torch.equal(after, after_wanted)


@pytest.mark.parametrize("name", MAKERS)
def test_draws_are_torchvisions(name: str) -> None:
    """In a batch, for one image of both classes, and inside of containers."""
    make = MAKERS[name]
    one = make()
    for image in (images(1)[0], tv_tensors.Image(images(1)[0]), torch.rand(2, 3, 33, 41)):
        try:
            one.sample(image)
        except Exception:  # an image that the transform does not take
            continue
        check(lambda image=image: one.sample(image))
    try:
        each = make(per_sample=True)
        each.sample(images())
    except Exception:  # no parameters for each sample
        return
    check(lambda: each.sample(images()))
    nested = ours.Compose(
        [
            ours.RandomApply([make(), ours.RandomHorizontalFlip()], p=0.6),
            ours.RandomOrder([make(), ours.RandomInvert(), ours.RandomResizedCrop(40)]),
            make(),
        ],
        per_sample=True,
    )
    try:
        nested(images())
    except Exception:  # a change of size inside of a container
        return
    check(lambda: nested.sample(images()))


@pytest.mark.parametrize("name", containers(ours))
def test_draws_of_containers(name: str) -> None:
    each = containers(ours, per_sample=True)[name]
    check(lambda: each.sample(images()))


# -- which code draws --------------------------------------------------------------------------------------


def program_of(transforms: list[Any], shape: tuple[int, ...], count: int) -> Callable[[], Tensor]:
    """Return a call that samples transforms for images of a shape."""
    program = programs.SamplingProgram(count, True)
    for i, transform in enumerate(transforms):
        program.path = (i,)
        assert program.add(transform, shape)
    rest = (
        program.sizes,
        program.shapes,
        program.generators,
        program.conditions,
        "\n".join(program.descriptions),
    )

    def sample() -> Tensor:
        out = torch.empty((count, sum(program.sizes)), dtype=torch.float64)
        programs.run_program(out, torch.ones((), dtype=torch.bool), None, *rest)
        return out

    return sample


@pytest.mark.parametrize("name", [n for n, case in _KNOWN.items() if case.name in RULED])
def test_a_batch_is_drawn_without_torchvision(name: str) -> None:
    sample = program_of([MAKERS[name]()], (1, 3, 40, 40), 7)
    torch.manual_seed(0)
    sample()  # compares the rule
    with patch.object(programs._Step, "draw", side_effect=AssertionError):
        sample()


def test_rules_of_other_classes_are_known() -> None:
    """The transforms without a rule: what they draw depends on boxes, has other distributions, or is noise."""
    without = {
        name
        for name in MAKERS
        if (made := MAKERS[name]())._description
        and draws.code_of(programs.from_description(made._description), (1, 3, 40, 40), 0) is None
    }
    assert {_KNOWN[name].name for name in without}.isdisjoint(RULED)


@pytest.mark.parametrize("method", ["make_params", "_numbers_from", "_draw"])
def test_a_subclass_with_other_draws_has_no_rule(method: str) -> None:
    class Own(ours.RandomResizedCrop):
        pass

    assert draws.code_of(Own(8), (1, 3, 9, 9), 0) is not None
    setattr(Own, method, lambda self, *args: getattr(super(Own, self), method)(*args))
    draws._has_rule.cache_clear()
    assert draws.code_of(Own(8), (1, 3, 9, 9), 0) is None


def test_a_method_of_one_object_is_called() -> None:
    crop = ours.RandomResizedCrop(8)
    image = images(1)[0]
    crop(image)
    crop.make_params = lambda inputs: {"top": 1, "left": 2, "height": 3, "width": 4}
    state = torch.get_rng_state()
    assert crop._draw_numbers([image]) == [1, 2, 3, 4]
    assert torch.equal(torch.get_rng_state(), state)


def test_arguments_that_change_are_seen() -> None:
    image = images(1)[0]
    jitter = ours.ColorJitter(0.5, 0.5, 0.5, 0.1)
    jitter._draw_numbers([image])
    jitter.brightness = (7.0, 7.0)
    assert jitter._draw_numbers([image])[4] == 7
    erasing = ours.RandomErasing(p=1.0)
    assert erasing._draw_numbers([image]) is not None
    erasing.p = 0.0
    assert erasing._draw_numbers([image]) is None


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
def test_copies_draw(copied: Callable[[Any], Any]) -> None:
    crop, image = ours.RandomResizedCrop(8), images(1)[0]
    crop(image)
    other = copied(crop)
    assert "_single_rule" not in vars(other)
    found, wanted = (drawn(lambda t=t: t._draw_numbers([image]), next(states()))[0] for t in (other, crop))
    assert found == wanted


# -- generators --------------------------------------------------------------------------------------------


def pipeline(**more: Any) -> Any:
    return ours.Compose(
        [
            ours.RandomResizedCrop(40, **more),
            ours.RandomHorizontalFlip(**more),
            ours.RandomApply([ours.ColorJitter(0.8, 0.8, 0.8, 0.2, **more)], p=0.8, **more),
            ours.RandomGrayscale(0.2, **more),
            ours.TrivialAugmentWide(**more),
        ],
        per_sample=True,
    )


@pytest.mark.parametrize("position", [0, 1, 2, 150, 613, *range(618, 625)])
def test_every_position_of_a_state(position: int) -> None:
    each, batch = pipeline(), images(3)
    torch.manual_seed(position)
    if position:
        torch.rand(position)
    state = torch.get_rng_state()
    found, after = drawn(lambda: each.sample(batch), state)
    with by_python():
        wanted, after_wanted = drawn(lambda: each.sample(batch), state)
    assert same(found, wanted) and torch.equal(after, after_wanted)


def test_the_second_number_of_a_normal_pair_stays() -> None:
    each, batch = pipeline(), images(3)
    torch.manual_seed(1)
    torch.randn(1, dtype=torch.float64), torch.randn(1)
    state = torch.get_rng_state()
    drawn(lambda: each.sample(batch), state)
    found = torch.randn(1), torch.randn(1, dtype=torch.float64), torch.randn(1, dtype=torch.float64)
    with by_python():
        drawn(lambda: each.sample(batch), state)
    assert found == (torch.randn(1), torch.randn(1, dtype=torch.float64), torch.randn(1, dtype=torch.float64))


@pytest.mark.parametrize("how", ["own", "default", "one has its own", "keyed"])
def test_other_generators(how: str) -> None:
    def run() -> tuple[Any, ...]:
        torch.manual_seed(5)
        own = torch.Generator().manual_seed(7)
        if how == "keyed":
            made = ours.seeded(pipeline(), [(0, i) for i in range(5)])
        elif how == "one has its own":
            made = ours.Compose(
                [ours.RandomResizedCrop(40), ours.RandomResizedCrop(40, generator=own), ours.RandomInvert()],
                per_sample=True,
            )
        else:
            made = pipeline(generator=own if how == "own" else torch.default_generator)
        out = made(images()), made(images())
        return (
            *out,
            ours.RandomResizedCrop(9, generator=own)(images(1)[0]),
            own.get_state(),
            torch.get_rng_state(),
        )

    found = run()
    with by_python():
        assert same(found, run())


@pytest.mark.parametrize("how", ["dtype", "device", "mode"])
def test_where_pytorch_would_draw_otherwise(how: str) -> None:
    """torch.rand has another dtype, or another device, or is another function."""

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), keywords: Any = None) -> Any:
            if function is Tensor.uniform_:
                return args[0].fill_(0.5)
            return function(*args, **(keywords or {}))

    def run() -> Any:
        torch.manual_seed(0)
        return ours.GaussianBlur(3, per_sample=True).sample(images())

    def within() -> Any:
        if how == "mode":
            with Mode():
                return run()
        if how == "device":
            with torch.device("cpu"):
                return run()
        torch.set_default_dtype(torch.float64)
        try:
            return run()
        finally:
            torch.set_default_dtype(torch.float32)

    found = within()
    with by_python():
        assert same(found, within())
    assert same(found, run()) == (how == "device")


def test_inference_mode() -> None:
    crop, image = ours.RandomResizedCrop(8), images(1)[0]
    draws._words.of.clear()
    with torch.inference_mode():
        for _ in range(20):
            crop(image)
    assert draws._words.of
    for _ in range(20):
        crop(image)


def test_threads_lose_no_draws() -> None:
    """No two threads draw the same numbers, as they would after a state that was put back."""
    made, batch = pipeline(), images(8)
    made.sample(batch)
    found: list[Tensor] = []

    def numbers() -> None:
        for _ in range(2000):
            found.append(torch.rand(50))

    threads = [threading.Thread(target=numbers) for _ in range(2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        made.sample(batch)
    pairs = torch.stack(found).unfold(1, 2, 1).reshape(-1, 2)
    assert len(pairs.unique(dim=0)) == len(pairs)


# -- samples that torchvision's code draws -----------------------------------------------------------------


def test_the_last_bits_of_exp_do_not_decide() -> None:
    """For large images they often do, and torchvision's code draws."""
    side, calls = 1 << 20, []
    rule = [ours.RandomResizedCrop(8), ours.RandomHorizontalFlip(), ours.RandomErasing(p=0.5)]
    sample = program_of(rule, (1, 3, side, side), 40)
    draw = programs._Step.draw
    for state in states():
        with patch.object(programs._Step, "draw", lambda *args: (calls.append(0), draw(*args))[1]):
            found, after = drawn(sample, state)
        with by_python():
            wanted, after_wanted = drawn(sample, state)
        assert torch.equal(found, wanted) and torch.equal(after, after_wanted)
    assert 0 < len(calls) < 12 * 40 * 3


def test_exp_is_close() -> None:
    """Native code allows for two units in the last place; all values of the default ratios are compared."""
    low, high = torch.log(torch.tensor((3 / 4, 4 / 3))).numpy()
    for start in range(0, 1 << 24, 1 << 20):
        words = np.arange(start, start + (1 << 20)) / (1 << 24)
        powers = torch.from_numpy((words * np.float64(high - low) + low).astype(np.float32))
        exact = torch.exp(powers.double()).float()
        assert int((torch.exp(powers).view(torch.int32) - exact.view(torch.int32)).abs().max()) <= 1
    for power in powers[::4099]:
        assert (
            int(
                (
                    torch.exp(power[None]).view(torch.int32)
                    - torch.exp(power.double()).float().view(torch.int32)
                ).abs()
            )
            <= 1
        )


@pytest.mark.parametrize("ratio", [(0.001, 0.002), (100.0, 200.0), (0.5, 0.5), (1.0, 1.0)])
@pytest.mark.parametrize("size", [(3, 50), (50, 3), (1, 1), (7, 7)])
def test_crops_that_do_not_fit(ratio: tuple[float, float], size: tuple[int, int]) -> None:
    image = torch.zeros(3, *size, dtype=torch.uint8)
    for transform in (
        ours.RandomResizedCrop(8, (0.9, 1.0), ratio),
        ours.RandomErasing(0.9, (0.5, 1.0), ratio),
    ):
        check(lambda transform=transform: transform.sample(image))


def test_errors_are_torchvisions() -> None:
    batch = images()
    for made in (
        ours.Compose([ours.RandomHorizontalFlip(), ours.RandomCrop(50)], per_sample=True),
        ours.RandomErasing(1.0, value=(1.0, 2.0), per_sample=True),
    ):
        raised = []
        for context in (patch.object(draws, "can_draw", draws.can_draw), by_python()):
            torch.manual_seed(2)
            with context, pytest.raises(ValueError) as error:
                made(batch)
            raised.append((str(error.value), torch.get_rng_state()))
        assert raised[0][0] == raised[1][0] and torch.equal(raised[0][1], raised[1][1])


@pytest.mark.parametrize("fits", [True, False])
def test_images_of_different_sizes(fits: bool) -> None:
    sizes = torch.tensor([[40, 50], [33, 60], [90, 41], [40 if fits else 20, 40]])
    data = torch.zeros(int(3 * sizes.prod(1).sum()), dtype=torch.uint8)
    packed = imgops.PackedImages(data, sizes)
    made = [
        ours.Compose(
            [ours.RandomHorizontalFlip(), ours.RandomCrop(30), ours.RandomErasing()], per_sample=True
        ),
        ours.Compose([ours.RandomApply([ours.RandomInvert()]), ours.RandomResizedCrop(30)], per_sample=True),
    ]
    for transform in made[: 2 if fits else 1]:
        for state in states():
            results = []
            for context in (patch.object(draws, "can_draw", draws.can_draw), by_python()):
                with context:
                    try:
                        results.append(drawn(lambda transform=transform: transform(packed), state))
                    except ValueError as error:
                        results.append((str(error), torch.get_rng_state()))
            assert same(*results) and isinstance(results[0][0], str) != fits


# -- comparisons and absence -------------------------------------------------------------------------------


@pytest.fixture
def forget() -> Iterator[None]:
    before = dict(compare.results), dict(compare.comparisons)
    programs._program.cache_clear()
    yield
    programs._program.cache_clear()
    compare.results.clear(), compare.comparisons.clear()
    compare.results.update(before[0]), compare.comparisons.update(before[1])


def test_a_torchvision_that_draws_otherwise_is_noticed(forget: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def other(self: Any, inputs: Any) -> dict[str, Any]:
        return {"top": int(torch.randint(3, ())), "left": 0, "height": 5, "width": 5}

    compare.results.pop("RandomResizedCrop's draws", None)
    monkeypatch.setattr(v2.RandomResizedCrop, "make_params", other)
    monkeypatch.setenv("IMGOPS_QUIET", "1")
    found = pipeline().sample(images())
    assert found[(0,)].numbers[:, 2:].unique().tolist() == [5]
    told = imgops.show_config("dicts")
    assert told["compared with the installed library"]["RandomResizedCrop's draws"].startswith("others")
    assert any(line.startswith("RandomResizedCrop's draws") for line in told["slow paths"])
    assert told["compared with the installed library"]["draws"] == "the numbers of PyTorch"


def test_a_generator_that_is_set_later() -> None:
    crop, image = ours.RandomResizedCrop(8), images(1)[0]
    crop(image)
    crop.generator = torch.Generator().manual_seed(3)
    state = torch.get_rng_state()
    found = crop._draw_numbers([image])
    assert torch.equal(torch.get_rng_state(), state)
    crop.generator = torch.Generator().manual_seed(3)
    with by_python():
        assert crop._draw_numbers([image]) == found


def test_comparisons_take_milliseconds(forget: None) -> None:
    compare.results.pop("draws", None)
    start = time.perf_counter()
    assert compare.agrees("draws")
    assert time.perf_counter() - start < 0.1


def test_a_pytorch_that_draws_otherwise_is_noticed(forget: None, monkeypatch: pytest.MonkeyPatch) -> None:
    rand = torch.randint
    monkeypatch.setattr(torch, "randint", lambda *args, **keywords: rand(*args, **keywords) + 1)
    assert draws._compare_kinds() == ""


def test_without_the_module(forget: None, monkeypatch: pytest.MonkeyPatch) -> None:
    each, batch = pipeline(), images()
    monkeypatch.setattr(draws, "_draws", None)
    programs._program.cache_clear()
    state = torch.Generator().manual_seed(4).get_state()
    wanted = drawn(lambda: each.sample(batch), state)
    monkeypatch.undo()
    programs._program.cache_clear()
    assert same(drawn(lambda: each.sample(batch), state), wanted)


# -- bytes from anywhere -----------------------------------------------------------------------------------


def test_the_layout_of_a_state() -> None:
    """The bytes of PyTorch's state are those that the native code reads: NumPy continues from them alike."""
    generator = torch.Generator().manual_seed(11)
    torch.rand(100, generator=generator)
    state = generator.get_state().numpy().tobytes()
    assert len(state) == 5056
    left, seeded, after = (int.from_bytes(state[a:b], "little") for a, b in ((8, 12), (12, 16), (16, 24)))
    assert (left, seeded, after) == (525, 1, 100)
    numpys = np.random.MT19937()
    key = np.frombuffer(state, dtype=np.uint64, count=624, offset=24).astype(np.uint32)
    numpys.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": after}}
    words = torch.randint(2**24, (1000,), generator=generator)
    assert words.tolist() == (numpys.random_raw(1000) % 2**24).tolist()


def test_random_bytes_raise_or_draw() -> None:
    """Nothing is read or written outside of the arguments, which ``make sanitize`` checks."""
    assert all(draws._draws.check(np.array(rule, dtype=np.float64), 800) for rule in fuzz_draws.RULES)
    drew, raised = fuzz_draws.run(5000, 0)
    assert drew > 500 and raised > 500


@pytest.mark.parametrize(
    "state",
    [np.zeros(5056, np.uint8), np.full(5056, 255, np.uint8), np.zeros(5055, np.uint8), np.zeros(0, np.uint8)],
)
def test_a_state_that_is_none_raises(state: np.ndarray) -> None:
    with pytest.raises(ValueError, match="generator must have a state"):
        draws.draw_row(Fake(state), np.zeros(0), draws.NO_SIZE, np.zeros(1))  # type: ignore[arg-type]


def test_a_state_that_changes_meanwhile_is_drawn_from() -> None:
    """Another thread may draw between the copy of the state and the draw of the same words."""
    ours_, theirs = (Fake(torch.Generator().manual_seed(seed).get_state().numpy()) for seed in (1, 8))
    asked = []

    def take(fake: Fake, count: int) -> np.ndarray:
        asked.append(count)
        if len(asked) == 1:
            fake.state = theirs.state
        return words_of(fake, count)

    code = np.array(draws.encode([draws.uniform(0, 0, 1)], 0).numbers)
    rows = np.zeros((3, 1))
    gate = np.ones(3, np.uint8)
    assert draws._draws.draw(ours_, take, code, np.zeros(1), gate, draws.NO_SIZE, rows, 0) == 3
    wanted = torch.rand(6, generator=torch.Generator().manual_seed(8))
    assert rows.ravel().tolist() == wanted[3:].tolist() and asked == [3, 3]


def test_a_state_that_always_changes_is_left_to_pytorch() -> None:
    fake = Fake(torch.Generator().manual_seed(1).get_state().numpy())
    code = np.array(draws.encode([draws.uniform(0, 0, 1)], 0).numbers)
    call = fake, lambda *_: np.zeros(3, np.int32), code, np.zeros(1), np.ones(3, np.uint8), draws.NO_SIZE
    assert draws._draws.draw(*call, np.zeros((3, 1)), 0) == 0
    with pytest.raises(ZeroDivisionError):
        draws._draws.draw(fake, lambda *_: 1 // 0, *call[2:], np.zeros((3, 1)), 0)


def test_each_class_has_its_own_comparison() -> None:
    """Classes of one name, such as the policies of torchvision's two versions, do not share a result."""
    import_module("imgops.integrations.torchvision.first_version")
    found, classes = {}, [RandomTransform]
    for cls in classes:
        classes += cls.__subclasses__()
        if cls.__module__.startswith("imgops.") and draws._has_rule(cls):
            assert found.setdefault(draws.name_of(cls), cls) is cls
    first = [cls for cls in classes if cls.__module__.endswith("first_version") and "Augment" in cls.__name__]
    assert len(first) == 3 and not any(map(draws._has_rule, first))


# -- as torchvision's classes draw ---------------------------------------------------------------------------

#: Other values for arguments of torchvision's transforms.
_CHANGED: dict[str, Any] = {
    "p": 0.3,
    "degrees": [-3.0, 9.0],
    "translate": (0.5, 0.1),
    "scale": (0.3, 0.4),
    "ratio": (2.0, 2.5),
    "sigma": [1.0, 5.0],
    "brightness": (0.1, 0.2),
    "hue": (-0.1, 0.3),
    "shear": [1.0, 9.0, 4.0, 4.0],
    "alpha": [90.0, 99.0],
    "distortion_scale": 0.9,
    "num_ops": 4,
    "magnitude": 1,
    "quality": [1, 5],
    "policy": v2.AutoAugmentPolicy.SVHN,
}
_DRAWING = {str(c): c for c in CASES if c.draws and not c.boxes and not c.sized}
#: Noise, which a call for a batch draws after all other numbers.
_NOT_AHEAD = ("GaussianNoise", "ElasticTransform", "AugMix")


def change(transform: Any, name: str, in_place: bool) -> bool:
    """Give an argument another value; return False if it has none, or is no list that can change in place."""
    before, value = getattr(transform, name, None), _CHANGED[name]
    if (
        not in_place
        and before is not None
        and isinstance(before, (list, tuple)) == isinstance(value, (list, tuple))
    ):
        setattr(transform, name, value)
        return True
    if in_place and isinstance(before, list) and isinstance(value, list) and len(before) == len(value):
        before[:] = value
        return True
    return False


def check_changed_arguments(name: str) -> None:
    """An attribute that is set or changed in place counts in the next call, in each mode."""
    batch, case = images(3), _DRAWING[name]
    for argument in _CHANGED:
        for in_place in (False, True):
            theirs = case.make(v2)
            if not change(theirs, argument, in_place):
                continue
            _, wanted = drawn(lambda: theirs(batch[0]), next(states()))
            _, each_wanted = drawn(lambda: [theirs(image) for image in batch], next(states()))
            own, each = case.make(ours), case.make(ours, per_sample=True)
            pipelines = ours.Compose([case.make(ours)]), ours.Compose([case.make(ours)], per_sample=True)
            for call, inputs, after in (
                (own, batch[0], wanted),
                (pipelines[0], batch[0], wanted),
                *((t, batch, each_wanted) for t in (each, pipelines[1]) if case.name not in _NOT_AHEAD),
            ):
                for _ in range(3):
                    call(inputs)
                part = call.transforms[0] if isinstance(call, ours.Compose) else call
                change(part, argument, in_place)
                for _ in range(3):
                    out, state = drawn(lambda: call(inputs), next(states()))
                    assert torch.equal(state, after), (argument, in_place)
                fresh = copy.deepcopy(call)  # its description is made anew
                assert torch.equal(out, drawn(lambda: fresh(inputs), next(states()))[0]), argument


def check_other_dtype(name: str) -> None:
    """torchvision draws whether a transform is applied by ``torch.rand(1)``, of two words in float64."""
    batch, case = images(3), _DRAWING[name]
    theirs, own, each = case.make(v2), case.make(ours), case.make(ours, per_sample=True)
    torch.set_default_dtype(torch.float64)
    try:
        try:
            _, wanted = drawn(lambda: theirs(batch[0]), next(states()))
        except RuntimeError:  # torchvision's code multiplies matrices of two dtypes
            return
        assert torch.equal(drawn(lambda: own(batch[0]), next(states()))[1], wanted)
        if case.name not in _NOT_AHEAD:
            assert torch.equal(drawn(lambda: each(batch[:1]), next(states()))[1], wanted)
    finally:
        torch.set_default_dtype(torch.float32)


def test_changed_arguments_draw_as_torchvisions() -> None:
    for name in _DRAWING:
        check_changed_arguments(name)


def test_draws_in_another_default_dtype() -> None:
    for name in _DRAWING:
        check_other_dtype(name)


def test_probabilities_that_are_tensors_change_in_place() -> None:
    p, image = torch.tensor(0.0), images(1)[0]
    made = ours.RandomInvert(p), ours.Compose([ours.RandomInvert(p), ours.RandomInvert(0.0)])
    assert all(torch.equal(t(image), image) for t in made for _ in range(3))
    p.fill_(1.0)
    assert all(torch.equal(t(image), 255 - image) for t in made for _ in range(3))
    each = ours.RandomInvert(p, per_sample=True)
    assert torch.equal(each(image[None])[0], 255 - image)
    p.fill_(0.0)
    assert torch.equal(each(image[None])[0], image)


@pytest.mark.parametrize("per_sample", [False, True])
def test_the_global_generator_given_is_the_global_one(per_sample: bool) -> None:
    """It goes on from call to call, as without the argument."""
    for given in (True, False):
        more = {"generator": torch.default_generator} if given else {}
        made = (
            ours.RandomCrop(8, per_sample=per_sample, **more),
            ours.RandomInvert(per_sample=per_sample, **more),
        )
        whole = ours.Compose([*made, ours.RandomChoice([ours.RandomSolarize(9, **more)], **more)])
        found = drawn(lambda: [t(images(2)) for t in (*made, whole) for _ in range(3)], next(states()))
        if given:
            wanted = found
    assert same(found[0], wanted[0]) and torch.equal(found[1], wanted[1])


def test_former_generators_are_forgotten() -> None:
    crop, image = ours.RandomResizedCrop(8), images(1)[0]
    gc.collect()
    kept = len(programs._generators), len(programs._ends), len(programs._brought)
    for seed in range(5):
        crop.generator = torch.Generator().manual_seed(seed)
        crop(image)
    handle = crop._generator_handle
    crop.generator = crop.generator
    assert crop._generator_handle == handle  # a graph is not made again
    assert len(programs._generators) == len(programs._ends) == kept[0] + 1
    other = copy.copy(crop)
    assert other.generator is crop.generator and other._generator_handle != handle
    del other, crop.generator
    gc.collect()
    assert (len(programs._generators), len(programs._ends), len(programs._brought)) == kept
    state = torch.get_rng_state()
    crop(image)
    assert not torch.equal(torch.get_rng_state(), state)


def test_a_fork_waits_for_an_exchange_of_states() -> None:
    """The child could neither take the lock nor get the state of the global generator back."""
    inside, state = threading.Event(), torch.get_rng_state()
    own = torch.Generator().manual_seed(1)

    def exchange() -> None:
        with seeding.exchange_generator(own):
            inside.set()
            time.sleep(0.5)

    thread = threading.Thread(target=exchange)
    thread.start()
    inside.wait()
    child = os.fork()
    if not child:
        signal.alarm(20)  # ends a child that waits for ever
        with seeding.exchange_generator(own):
            pass
        os._exit(0 if torch.equal(torch.get_rng_state(), state) else 1)
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
