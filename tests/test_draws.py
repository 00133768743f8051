"""Draws by native code: the numbers of torchvision's code, and the generator's state after it, bit for bit."""

from __future__ import annotations

import copy
import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import product
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
from tests.checks import difference, same
from tests.fuzz_draws import Fake, words_of
from tests.tiers import nightly, nightly_unless
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


def states(positions: Iterable[int] = (0, 1, 101, 202, 620)) -> Iterator[Tensor]:
    """Yield states after some words of a generator, some of them with the second number of a normal pair."""
    for seed, position in enumerate(positions):
        generator = torch.Generator().manual_seed(seed)
        torch.rand(position, generator=generator)
        if seed % 3 == 0:
            torch.randn(1, generator=generator)  # which keeps the second number of its pair
            torch.randn(1, generator=generator, dtype=torch.float64)
        yield generator.get_state()


def drawn(call: Callable[[], Any], state: Tensor | None = None) -> tuple[Any, Tensor]:
    """Return the result of a call, or the text of its error, and the state after it."""
    torch.set_rng_state(next(states()) if state is None else state)
    try:
        out = call()
    except ValueError as error:
        out = str(error)
    return out, torch.get_rng_state()


IMAGES = torch.stack([picture(height=40, width=40, seed=i) for i in range(5)])
IMAGE = IMAGES[0]


def check(call: Callable[[], Any], after: Iterable[Tensor] | None = None) -> list[Any]:
    """Check that native code draws what torchvision's code draws, from each state, and return the results."""
    results = []
    for state in states() if after is None else after:
        found = drawn(call, state)
        with by_python():
            same(found, drawn(call, state))
        results.append(found[0])
    return results


def together(*transforms: Any) -> Any:
    return ours.Compose(transforms, per_sample=True)


def pipeline(**more: Any) -> Any:
    return together(
        ours.RandomResizedCrop(40, **more),
        ours.RandomHorizontalFlip(**more),
        ours.RandomApply([ours.ColorJitter(0.8, 0.8, 0.8, 0.2, **more)], p=0.8, **more),
        ours.RandomGrayscale(0.2, **more),
        ours.TrivialAugmentWide(**more),
    )


# -- as torchvision's code ----------------------------------------------------------------------------------


def takes(call: Callable[[], Any]) -> bool:
    try:
        call()
    except Exception:  # an image, a size or a mode that the transform does not take
        return False
    return True


@pytest.mark.parametrize("name", nightly_unless(lambda name: _KNOWN[name].name in RULED, MAKERS))
def test_draws_are_torchvisions(name: str) -> None:
    """In a batch, for one image of both classes, and inside of containers."""
    make = MAKERS[name]
    one = make()
    for image in (IMAGE, tv_tensors.Image(IMAGE), torch.rand(2, 3, 33, 41)):
        if takes(lambda image=image: one.sample(image)):
            check(lambda image=image: one.sample(image))
    if not takes(lambda: make(per_sample=True).sample(IMAGES)):
        return
    each = make(per_sample=True)
    check(lambda: each.sample(IMAGES))
    nested = together(
        ours.RandomApply([make(), ours.RandomHorizontalFlip()], p=0.6),
        ours.RandomOrder([make(), ours.RandomInvert(), ours.RandomResizedCrop(40)]),
        make(),
    )
    if takes(lambda: nested(IMAGES)):
        check(lambda: nested.sample(IMAGES))


def packed(least: int) -> Any:
    sizes = torch.tensor([[40, 50], [33, 60], [90, 41], [least, 40]])
    return imgops.PackedImages(torch.zeros(int(3 * sizes.prod(1).sum()), dtype=torch.uint8), sizes)


def with_generators(how: str) -> Any:
    """Return what a pipeline with a generator gives, and the generator's state."""
    own = torch.Generator().manual_seed(7)
    if how == "keyed":
        made = ours.seeded(pipeline(), [(0, i) for i in range(5)])
    elif how == "one has its own":
        made = together(
            ours.RandomResizedCrop(40), ours.RandomResizedCrop(40, generator=own), ours.RandomInvert()
        )
    else:
        made = pipeline(generator=own if how == "own" else torch.default_generator)
    crop = ours.RandomResizedCrop(9)
    crop(IMAGE)
    crop.generator = own  # set later
    return made(IMAGES), made(IMAGES), crop(IMAGE), crop._draw_numbers([IMAGE]), own.get_state()


def without_a_place(transform: Any, ratio: tuple[float, float], size: tuple[int, int]) -> Any:
    made = transform((0.5, 1.0), ratio)
    return made.sample(torch.zeros(3, *size, dtype=torch.uint8))


CROPS = lambda *how: ours.RandomResizedCrop(8, *how), lambda *how: ours.RandomErasing(0.9, *how)
RATIOS = (0.001, 0.002), (100.0, 200.0), (0.5, 0.5), (1.0, 1.0)
#: Calls that draw, and those that raise after some draws.
CALLS: dict[str, Callable[[], Any]] = {
    **{name: partial(made.sample, IMAGES) for name, made in containers(ours, per_sample=True).items()},
    **{how: partial(with_generators, how) for how in ("own", "default", "one has its own", "keyed")},
    **{
        f"{i}, {ratio}, {size}": partial(without_a_place, CROPS[i], ratio, size)
        for i, ratio, size in product((0, 1), RATIOS, ((3, 50), (50, 3), (1, 1), (7, 7)))
    },
    "sizes": lambda: together(ours.RandomHorizontalFlip(), ours.RandomCrop(30))(packed(40)),
    "containers of sizes": lambda: together(
        ours.RandomApply([ours.RandomInvert()]), ours.RandomResizedCrop(30)
    )(packed(40)),
}
ERRORS: dict[str, Callable[[], Any]] = {
    "no place": lambda: together(ours.RandomHorizontalFlip(), ours.RandomCrop(50))(IMAGES),
    "no place in one": lambda: together(ours.RandomHorizontalFlip(), ours.RandomCrop(30))(packed(20)),
    "two values": lambda: ours.RandomErasing(1.0, value=(1.0, 2.0), per_sample=True)(IMAGES),
}


@pytest.mark.parametrize("name", [*CALLS, *ERRORS])
def test_calls(name: str) -> None:
    results = check({**CALLS, **ERRORS}[name])
    assert [isinstance(result, str) for result in results] == [name in ERRORS] * len(results)


def test_every_position_of_a_state() -> None:
    each = pipeline()
    check(lambda: each.sample(IMAGES[:3]), states([0, 1, 2, 150, 613, *range(618, 625)]))


class Halves(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function: Any, types: Any, args: Any = (), keywords: Any = None) -> Any:
        return args[0].fill_(0.5) if function is Tensor.uniform_ else function(*args, **(keywords or {}))


@contextmanager
def in_double_precision() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("within", [in_double_precision, lambda: torch.device("cpu"), Halves])
def test_where_pytorch_would_draw_otherwise(within: Callable[[], Any]) -> None:
    """torch.rand has another dtype, or another device, or is another function."""
    blur = ours.GaussianBlur(3, per_sample=True)

    def call() -> Any:
        with within():
            return blur.sample(IMAGES)

    usual = drawn(lambda: blur.sample(IMAGES))[0]
    assert bool(difference(check(call)[0], usual)) == (within in (in_double_precision, Halves))


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


# -- generators --------------------------------------------------------------------------------------------


def test_inference_mode() -> None:
    crop, image = ours.RandomResizedCrop(8), IMAGE
    draws._words.of.clear()
    with torch.inference_mode():
        for _ in range(20):
            crop(image)
    assert draws._words.of
    for _ in range(20):
        crop(image)


@nightly
def test_threads_lose_no_draws() -> None:
    """No two threads draw the same numbers, as they would after a state that was put back."""
    made, batch = pipeline(), IMAGES
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
    check(sample)
    for state in states():
        with patch.object(programs._Step, "draw", lambda *args: (calls.append(0), draw(*args))[1]):
            drawn(sample, state)
    assert 0 < len(calls) < 5 * 40 * 3


@nightly
def test_exp_is_close() -> None:
    """Native code allows for two units in the last place; all values of the default ratios are compared."""

    def units(powers: Tensor) -> int:
        exact = torch.exp(powers.double()).float()
        return int((torch.exp(powers).view(torch.int32) - exact.view(torch.int32)).abs().max())

    low, high = torch.log(torch.tensor((3 / 4, 4 / 3))).numpy()
    for start in range(0, 1 << 24, 1 << 20):
        words = np.arange(start, start + (1 << 20)) / (1 << 24)
        powers = torch.from_numpy((words * np.float64(high - low) + low).astype(np.float32))
        assert units(powers) <= 1
    assert all(units(power[None]) <= 1 for power in powers[::4099])


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
    found = pipeline().sample(IMAGES)
    assert found[(0,)].numbers[:, 2:].unique().tolist() == [5]
    told = imgops.show_config("dicts")
    assert told["compared with the installed library"]["RandomResizedCrop's draws"].startswith("others")
    assert any(line.startswith("RandomResizedCrop's draws") for line in told["slow paths"])
    assert told["compared with the installed library"]["draws"] == "the numbers of PyTorch"


def test_a_pytorch_that_draws_otherwise_is_noticed(forget: None, monkeypatch: pytest.MonkeyPatch) -> None:
    rand = torch.randint
    monkeypatch.setattr(torch, "randint", lambda *args, **keywords: rand(*args, **keywords) + 1)
    assert draws._compare_kinds() == ""


def test_without_the_module(forget: None, monkeypatch: pytest.MonkeyPatch) -> None:
    each, batch = pipeline(), IMAGES
    monkeypatch.setattr(draws, "_draws", None)
    programs._program.cache_clear()
    state = torch.Generator().manual_seed(4).get_state()
    wanted = drawn(lambda: each.sample(batch), state)
    monkeypatch.undo()
    programs._program.cache_clear()
    same(drawn(lambda: each.sample(batch), state), wanted)


# -- bytes from anywhere -----------------------------------------------------------------------------------


def test_random_bytes_raise_or_draw(whole: bool) -> None:
    """Nothing is read or written outside of the arguments, which ``make sanitize`` checks."""
    assert all(draws._draws.check(np.array(rule, dtype=np.float64), 800) for rule in fuzz_draws.RULES)
    drew, raised = fuzz_draws.run(5000 if whole else 1000, 0)
    assert drew > 100 and raised > 100


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
    if in_place and isinstance(before, list) and isinstance(value, list) and len(before) == len(value):
        before[:] = value
        return True
    is_sequence = isinstance(before, (list, tuple)), isinstance(value, (list, tuple))
    if in_place or before is None or is_sequence[0] != is_sequence[1]:
        return False
    setattr(transform, name, value)
    return True


def forms(name: str) -> list[tuple[Any, Any]]:
    """Return a transform alone and in a pipeline, with and without draws for each sample, and the inputs of each."""
    case = _DRAWING[name]
    single = case.make(ours), ours.Compose([case.make(ours)])
    each = (
        (case.make(ours, per_sample=True), together(case.make(ours))) if case.name not in _NOT_AHEAD else ()
    )
    return [*((t, IMAGE) for t in single), *((t, IMAGES[:3]) for t in each)]


def state_after(theirs: Any, inputs: Tensor) -> Tensor:
    """Return the state after torchvision's transform, on each image of a batch."""
    return drawn(lambda: [theirs(image) for image in inputs.reshape(-1, *inputs.shape[-3:])])[1]


@pytest.mark.parametrize("argument", _CHANGED)
def test_changed_arguments_draw_as_torchvisions(argument: str) -> None:
    """An attribute that is set or changed in place counts in the next call, in each mode."""
    for name, in_place in product(_DRAWING, (False, True)):
        theirs = _DRAWING[name].make(v2)
        if not change(theirs, argument, in_place):
            continue
        for call, inputs in forms(name):
            for _ in range(3):
                call(inputs)
            change(call.transforms[0] if isinstance(call, ours.Compose) else call, argument, in_place)
            wanted = state_after(theirs, inputs)
            for _ in range(3):
                out, state = drawn(lambda: call(inputs))
                assert torch.equal(state, wanted), (name, in_place)
            fresh = copy.deepcopy(call)  # its description is made anew
            assert torch.equal(out, drawn(lambda: fresh(inputs))[0]), name


@pytest.mark.parametrize("name", _DRAWING)
def test_draws_in_another_default_dtype(name: str) -> None:
    """torchvision draws whether a transform is applied by ``torch.rand(1)``, of two words in float64."""
    theirs = _DRAWING[name].make(v2)
    with in_double_precision():
        if takes(lambda: theirs(IMAGE)):  # torchvision's code may multiply matrices of two dtypes
            for call, inputs in forms(name):
                given = inputs if inputs.ndim == 3 else inputs[:1]
                assert torch.equal(drawn(lambda: call(given))[1], state_after(theirs, IMAGE))
    assert compare.results.get(f"{_DRAWING[name].name}'s draws", True)  # not compared in this dtype


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
        found = drawn(lambda: [t(IMAGES[:2]) for t in (*made, whole) for _ in range(3)])
        if given:
            wanted = found
    same(found, wanted)


def test_former_generators_are_forgotten() -> None:
    crop, image = ours.RandomResizedCrop(8), IMAGE
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
