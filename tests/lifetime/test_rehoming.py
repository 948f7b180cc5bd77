"""Memory re-homed in place under a live view: what is promised, and what is no worse than torch's own views.

Torch can move a storage's memory without telling who looks at it. A snapshot (``copy="lazy"``) or a copy does not care;
a plain view is then no view any more, as is every array that ``np.from_dlpack`` made.
"""

from __future__ import annotations

from helpers.subprocess import stdout_of

# Each moves the memory of `t` (65,536 floats, 0 and up) elsewhere, or gives it back.
REHOMING = {
    "resize_ to more": "t.resize_(1 << 20)",
    "storage.resize_ to more": "t.untyped_storage().resize_(1 << 22)",
    "storage.resize_ to nothing": "t.untyped_storage().resize_(0)",
    "share_memory_": "t.share_memory_()",
    "writes": "t.add_(1); t[5:] = 9; t.view(256, 256).t().zero_()",
    "writes, then share_memory_": "t.zero_(); t.share_memory_(); t.fill_(3)",
    "share_memory_, then writes": "t.share_memory_(); t.zero_()",
    "set_ and collection": "t.set_(torch.zeros(1).untyped_storage())",
}
KEPT = ['copy="lazy"', "copy=True", 'dtype="float64"', 'order="C", copy="lazy"']


def test_snapshots_and_copies_survive_rehoming_in_place():
    printed = stdout_of(
        f"""
        import os, warnings
        warnings.simplefilter("ignore")
        import numpy as np, torch
        import tensorferry as ferry
        torch.set_num_threads(1)  # a pool of threads would have to be made anew in every child
        expected = np.arange(1 << 16, dtype=np.float32)

        def survives(rehome, keep, pick):
            t = torch.arange(float(1 << 16))
            first, second = ferry.to_numpy(pick(t), **keep), ferry.to_numpy(pick(t), **keep)
            try:
                exec(rehome, dict(t=t, torch=torch))
            except RuntimeError as error:  # torch may refuse: then nothing has moved
                assert "not resizable" in str(error), error
            scratch = [torch.full((1 << 16,), -1.0) for _ in range(8)]
            right = np.array_equal(first, pick(expected)) and np.array_equal(second, pick(expected))
            del first, t
            return right and np.array_equal(second, pick(expected))

        for name, rehome in {REHOMING}.items():
            for keep in ({", ".join(f"dict({arguments})" for arguments in KEPT)}):
                for pick in (lambda x: x, lambda x: x[1::2], lambda x: x.reshape(256, 256).T):
                    child = os.fork()  # a read of memory that is gone kills the child alone
                    if child == 0:
                        code = 1
                        try:
                            code = int(not survives(rehome, keep, pick))
                        finally:
                            os._exit(code)
                    print(name, keep, os.waitpid(child, 0)[1])
        """
    )
    outcomes = printed.splitlines()
    assert len(outcomes) == 3 * len(REHOMING) * len(KEPT)
    assert [outcome for outcome in outcomes if not outcome.endswith(" 0")] == []


def test_after_rehoming_a_plain_view_is_known_to_share_no_longer():
    printed = stdout_of(
        """
        import numpy as np, torch
        import tensorferry as ferry
        for grow in (lambda t: t.resize_(1 << 22), lambda t: t.untyped_storage().resize_(1 << 24)):
            t = torch.arange(float(1 << 16))
            view, foreign = ferry.to_numpy(t), np.from_dlpack(t)
            print(ferry.shares_memory(view, t), np.shares_memory(view, foreign))
            try:
                grow(t)
                moved = True
            except RuntimeError:
                moved = False
            # Only addresses are compared: whatever lay there may be gone.
            print(ferry.shares_memory(view, t) is not moved, view.ctypes.data == foreign.ctypes.data)
            print((ferry.to_numpy(t)[:4] == [0, 1, 2, 3]).all(), t[5].item())
        """
    )
    assert printed.splitlines() == ["True True", "True True", "True 5.0"] * 2


def test_a_tensor_whose_memory_was_taken_away_is_refused_and_comes_back():
    printed = stdout_of(
        """
        import torch
        import tensorferry as ferry
        t = torch.arange(4.0)
        nbytes = t.untyped_storage().nbytes()
        t.untyped_storage().resize_(0)
        for copy in (None, True, False, "lazy"):
            try:
                ferry.to_numpy(t, copy=copy)
            except ferry.LayoutError as error:
                print("storage" in str(error))
        t.untyped_storage().resize_(nbytes)
        t.copy_(torch.arange(4.0))
        print(ferry.to_numpy(t).tolist())
        """
    )
    assert printed.splitlines() == ["True"] * 4 + ["[0.0, 1.0, 2.0, 3.0]"]


def test_after_share_memory_a_new_view_sees_the_shared_memory():
    printed = stdout_of(
        """
        import torch
        import tensorferry as ferry
        t = torch.arange(4.0)
        t.share_memory_()
        view, snapshot = ferry.to_numpy(t), ferry.to_numpy(t, copy="lazy")
        t.add_(1)
        print(view.tolist(), snapshot.tolist(), view.ctypes.data == t.data_ptr())
        """
    )
    assert printed == "[1.0, 2.0, 3.0, 4.0] [0.0, 1.0, 2.0, 3.0] True"


def test_a_view_taken_beside_a_snapshot_stays_live():
    printed = stdout_of(
        """
        import torch
        import tensorferry as ferry
        for order in ("view first", "snapshot first"):
            t = torch.arange(4.0)
            if order == "view first":
                view = ferry.to_numpy(t)
            snapshot = ferry.to_numpy(t, copy="lazy")
            if order == "snapshot first":
                view = ferry.to_numpy(t)
            t.add_(1)
            print(view.tolist() == t.tolist(), snapshot.tolist())
            del t, snapshot
            scratch = [torch.full((4,), -1.0) for _ in range(100)]
            print(view.tolist())
        """
    )
    assert printed.splitlines() == ["True [0.0, 1.0, 2.0, 3.0]", "[1.0, 2.0, 3.0, 4.0]"] * 2
