"""The C exchange table of a foreign type: read where it may be, never where a class says something else."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.counting_capsules import CUDA, CountingCapsule
from helpers.exchange_tables import ATTRIBUTE, ExchangeTable
from helpers.subprocess import stdout_of

READ = os.environ.get("TENSORFERRY_NO_EXCHANGE_API", "0") in ("", "0")


def _class(table: ExchangeTable, *bases: type, **methods: Any) -> type:
    def remember(self: Any, made: CountingCapsule | None) -> None:
        self.made = made

    return type("Tabled", bases, {"__init__": remember, ATTRIBUTE: table.capsule, **methods})


class Speaks:
    """Offers what ``made`` manages through the method too."""

    made: CountingCapsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **_: Any) -> Any:
        return self.made.capsule


CONSUMERS = {
    "to_numpy": ferry.to_numpy,
    "to_numpy, copy": lambda x: ferry.to_numpy(x, copy=True),
    "to_numpy of a nest": lambda x: ferry.to_numpy({"k": x})["k"],
    "from_numpy": ferry.from_numpy,
    "from_dlpack": ferry.from_dlpack,
    "from_dlpack to NumPy": lambda x: ferry.from_dlpack(x, to="numpy"),
    "stack": lambda x: ferry.stack([x])[0],
    "to_python": ferry.to_python,
    "to_dlpack": lambda x: np.from_dlpack(ferry.to_dlpack(x)),
}


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_the_table_is_read_and_its_deleter_runs_once(consumer):
    table = ExchangeTable()
    made = CountingCapsule((2, 2))
    made.values[:4] = [1, 2, 3, 4]
    taken = CONSUMERS[consumer](_class(table, Speaks)(made))
    assert np.asarray(taken).tolist() == [[1, 2], [3, 4]]
    assert table.calls == int(READ)
    del taken
    assert made.deletions == 1


def test_a_type_with_nothing_but_a_table_is_a_producer_too():
    printed = stdout_of(
        """
        import os
        os.environ["TENSORFERRY_NO_EXCHANGE_API"] = "0"
        import numpy as np, torch
        import tensorferry as ferry
        from helpers.counting_capsules import CountingCapsule
        from helpers.exchange_tables import ATTRIBUTE, ExchangeTable
        class Tabled:
            def __init__(self, made):
                self.made = made
        table = ExchangeTable()
        setattr(Tabled, ATTRIBUTE, table.capsule)
        calls = [
            ferry.to_numpy,
            lambda x: ferry.to_numpy({"k": [x]})["k"][0],
            ferry.from_numpy,
            ferry.from_dlpack,
            lambda x: ferry.from_dlpack(x, to="numpy"),
            lambda x: ferry.stack([x])[0],
            lambda x: np.asarray(ferry.to_python(x)),
            lambda x: np.from_dlpack(ferry.to_dlpack(x)),
            lambda x: np.zeros(ferry.describe(x).shape),
            lambda x: np.zeros(ferry.plan(x).shape),
            lambda x: np.zeros(ferry.explain(x).plan.shape),
            lambda x: np.zeros(3) if ferry.check(x, shape=(3,), dtype="float32") is x else None,
        ]
        for number, call in enumerate(calls, 1):
            made = CountingCapsule((3,))
            result = call(Tabled(made))
            print(result.tolist(), table.calls == number, end=" ")
            del result
            print(made.deletions)
        try:
            ferry.to_numpy(Tabled(None))
        except ferry.LayoutError as error:
            print(error.why)
        """
    )
    assert printed.splitlines() == ["[0.0, 0.0, 0.0] True 1"] * 12 + [
        "it refuses to export itself (it gives no reason)"
    ]


@pytest.mark.parametrize("shape", [(), (0,), (0, 2), (1, 1)], ids=str)
def test_scalars_and_empty_tensors_come_through_the_table(shape):
    made = CountingCapsule(shape, data=0 if 0 in shape else None)
    taken = ferry.to_numpy(_class(ExchangeTable(), Speaks)(made))
    assert taken.shape == shape
    del taken
    assert made.deletions == 1


@pytest.mark.parametrize(
    "claim",
    [{"device": CUDA}, {"major": 2}, {"lanes": 3}, {"shape": (-1,)}, {"shape": (1,) * 65}, {"data": 0}],
    ids=["device memory", "newer version", "lanes", "negative extent", "65 axes", "no memory"],
)
def test_what_the_table_gives_is_checked_like_any_offer(claim):
    made = CountingCapsule(**{"shape": (3,), "data": 0x10, **claim})
    with pytest.raises(ferry.FerryError) as caught:
        ferry.to_numpy(_class(ExchangeTable(), Speaks)(made))
    assert caught.value.instead
    assert made.deletions == 1


def test_read_only_offers_stay_read_only():
    made = CountingCapsule((3,), flags=1)
    assert not ferry.to_numpy(_class(ExchangeTable(), Speaks)(made)).flags.writeable
    made = CountingCapsule((3,), flags=1)
    with pytest.raises(ferry.FerryError, match="read-only"):
        ferry.from_dlpack(_class(ExchangeTable(), Speaks)(made))


class Failing:
    """Refuses, with an error of its own."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def fileno(self) -> int:
        raise self.error

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **_: Any) -> Any:
        raise self.error


@pytest.mark.parametrize("error", [RuntimeError("boom"), KeyError("boom"), BufferError("boom")], ids=repr)
def test_an_error_of_the_table_is_replaced_by_ours_that_quotes_it(error):
    cls = type("Tabled", (Failing,), {ATTRIBUTE: ExchangeTable(raises=True).capsule})
    with pytest.raises(ferry.LayoutError, match="boom") as caught:
        ferry.to_numpy(cls(error))
    assert caught.value.__cause__ is error
    with pytest.raises(ferry.LayoutError, match=r"leaf \[0\].*boom"):
        ferry.to_numpy([cls(error)])


UNUSABLE = {
    "of a newer major version": lambda: ExchangeTable(major=2),
    "under another name": lambda: ExchangeTable(name=b"dlpack_exchange_api_draft"),
    "without an entry": lambda: ExchangeTable(empty=True),
}


@pytest.mark.parametrize("reason", UNUSABLE)
def test_a_table_that_cannot_be_used_is_passed_over_for_the_method(reason):
    table, made = UNUSABLE[reason](), CountingCapsule((3,))
    assert ferry.to_numpy(_class(table, Speaks)(made)).tolist() == [0, 0, 0]
    assert table.calls == 0
    with pytest.raises(ferry.DTypeError):
        ferry.to_numpy(_class(table)(None))


def test_an_attribute_that_is_no_capsule_is_passed_over():
    cls = type("Odd", (Speaks,), {ATTRIBUTE: "not a capsule"})
    x = cls()
    x.made = CountingCapsule((2,))
    assert ferry.to_numpy(x).tolist() == [0, 0]


def test_the_table_of_an_older_version_is_found_behind_a_newer_one():
    older = ExchangeTable()
    made = CountingCapsule((3,))
    assert ferry.to_numpy(_class(ExchangeTable(major=2, previous=older), Speaks)(made)).tolist() == [0, 0, 0]
    assert older.calls == int(READ)


class Doubled:
    """Says by its method what the table does not say."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **arguments: Any) -> Any:
        return np.array([7.0]).__dlpack__(max_version=arguments.get("max_version"))


def test_a_subclass_that_overrides_the_method_is_asked_through_it():
    table, made = ExchangeTable(), CountingCapsule((3,))
    parent = _class(table, Speaks)
    child = type("Child", (Doubled, parent), {})
    grandchild = type("Grandchild", (child,), {})
    for cls in (child, grandchild):
        assert ferry.to_numpy(cls(made)).tolist() == [7]
        assert ferry.to_numpy((cls(made),))[0].tolist() == [7]
    assert table.calls == 0
    assert ferry.to_numpy(parent(made)).tolist() == [0, 0, 0]
    assert table.calls == int(READ)


def test_a_subclass_that_overrides_nothing_inherits_the_table():
    table, made = ExchangeTable(), CountingCapsule((3,))
    child = type("Child", (_class(table, Speaks),), {"other": 1})
    assert ferry.to_numpy(child(made)).tolist() == [0, 0, 0]
    assert table.calls == int(READ)


def test_a_subclass_with_a_table_of_its_own_is_read_through_that():
    inherited, own, made = ExchangeTable(), ExchangeTable(), CountingCapsule((3,))
    child = type("Child", (_class(inherited, Doubled),), {ATTRIBUTE: own.capsule})
    assert ferry.to_numpy(child(made)).tolist() == ([0, 0, 0] if READ else [7])
    assert (inherited.calls, own.calls) == (0, int(READ))
    if not READ:
        del made.capsule


def test_many_types_with_tables_all_convert():
    for _ in range(60):
        made = CountingCapsule((2,))
        assert ferry.to_numpy(_class(ExchangeTable(), Speaks)(made)).tolist() == [0, 0]
        assert made.deletions == 1


class Shifted(torch.Tensor):
    """Is read from other memory than its own."""

    def __dlpack__(self, **arguments: Any) -> Any:
        return (self.as_subclass(torch.Tensor) + 1).__dlpack__(**arguments)


class ShiftedParameter(torch.nn.Parameter):
    """The same, of a parameter."""

    def __dlpack__(self, **arguments: Any) -> Any:
        return (self.detach().as_subclass(torch.Tensor) + 1).__dlpack__(**arguments)


SHIFTED = {
    "tensor": lambda: torch.zeros(2).as_subclass(Shifted),
    "child class": lambda: torch.zeros(2).as_subclass(type("Child", (Shifted,), {})),
    "parameter": lambda: ShiftedParameter(torch.zeros(2), requires_grad=False),
}


@pytest.mark.parametrize("consumer", [name for name in CONSUMERS if name != "from_numpy"])
@pytest.mark.parametrize("kind", SHIFTED)
def test_a_tensor_subclass_that_overrides_the_method_is_asked_through_it(kind, consumer):
    tensor = SHIFTED[kind]()
    assert np.asarray(CONSUMERS[consumer](tensor)).tolist() == [1, 1]
    assert tensor.as_subclass(torch.Tensor).tolist() == [0, 0]
    assert np.asarray(CONSUMERS[consumer](torch.zeros(2).as_subclass(type("Plain", (torch.Tensor,), {})))).sum() == 0
