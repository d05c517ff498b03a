"""
The Merkle tree of RFC 6962 over a log's leaves: roots, and proofs that stay small however long the log is. Pure.

A root of size n covers the leaves of positions 1 to n. An inclusion proof shows that one leaf is under a root, a
consistency proof that the tree of an older root is a prefix of the tree of a newer one. Indexes count from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from grandbo.events.chain import sha256

Proof = list[bytes]


def node(left: bytes, right: bytes) -> bytes:
    """Hash of an inner node."""
    return sha256(b"\x01", left, right)


class Frontier:
    """The right edge of a growing tree: all that is needed to add leaves and to know the root, log2(n) hashes."""

    __slots__ = ("_nodes", "size")

    def __init__(self) -> None:
        self.size = 0
        self._nodes: list[bytes] = []

    def add(self, leaf: bytes) -> None:
        """Append one leaf."""
        size, whole = self.size, leaf
        while size & 1:
            whole = node(self._nodes.pop(), whole)
            size >>= 1
        self._nodes.append(whole)
        self.size += 1

    def root(self) -> bytes:
        """Root over all leaves so far."""
        if not self._nodes:
            return sha256(b"")
        root = self._nodes[-1]
        for left in reversed(self._nodes[:-1]):
            root = node(left, root)
        return root


def root_of(leaves: Iterable[bytes]) -> bytes:
    """Root over these leaves."""
    frontier = Frontier()
    for leaf in leaves:
        frontier.add(leaf)
    return frontier.root()


def inclusion_proof(leaves: Sequence[bytes], index: int) -> Proof:
    """Path from the leaf at `index` to the root over `leaves`, lowest sibling first."""
    if not 0 <= index < len(leaves):
        raise IndexError("no such leaf")
    if len(leaves) == 1:
        return []
    left, right = _halves(leaves)
    if index < len(left):
        return [*inclusion_proof(left, index), root_of(right)]
    return [*inclusion_proof(right, index - len(left)), root_of(left)]


def consistency_proof(leaves: Sequence[bytes], old_size: int) -> Proof:
    """What shows that the tree of the first `old_size` leaves is a prefix of the tree of all of them."""
    if not 0 < old_size <= len(leaves):
        raise IndexError("no such older tree")
    return _consistency(leaves, old_size, is_whole=True)


def _consistency(leaves: Sequence[bytes], old_size: int, *, is_whole: bool) -> Proof:
    if old_size == len(leaves):
        # The verifier holds the old root itself; below it, the subtree's root has to be told.
        return [] if is_whole else [root_of(leaves)]
    left, right = _halves(leaves)
    if old_size <= len(left):
        return [*_consistency(left, old_size, is_whole=is_whole), root_of(right)]
    return [*_consistency(right, old_size - len(left), is_whole=False), root_of(left)]


def is_included(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Whether the proof shows that `leaf` stands at `index` under the root of this size (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size:
        return False
    at, last, found = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            return False
        if at & 1 or at == last:
            found = node(sibling, found)
            at, last = _up_to_left_turn(at, last)
        else:
            found = node(found, sibling)
        at, last = at >> 1, last >> 1
    return last == 0 and found == root


def is_consistent(old_size: int, new_size: int, proof: Sequence[bytes], old_root: bytes, new_root: bytes) -> bool:
    """Whether the proof shows that the old tree is a prefix of the new one (RFC 9162, 2.1.4.2)."""
    if not 0 < old_size <= new_size:
        return False
    if old_size == new_size:
        return not proof and old_root == new_root
    # A whole subtree is the old tree itself, whose root the proof leaves out.
    path = [old_root, *proof] if old_size & (old_size - 1) == 0 else list(proof)
    if not path:
        return False
    at, last = old_size - 1, new_size - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    old = new = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if at & 1 or at == last:
            old, new = node(sibling, old), node(sibling, new)
            at, last = _up_to_left_turn(at, last)
        else:
            new = node(new, sibling)
        at, last = at >> 1, last >> 1
    return last == 0 and old == old_root and new == new_root


def _halves(leaves: Sequence[bytes]) -> tuple[Sequence[bytes], Sequence[bytes]]:
    """The left half holds the largest power of two of leaves that leaves something for the right one."""
    split = 1 << ((len(leaves) - 1).bit_length() - 1)
    return leaves[:split], leaves[split:]


def _up_to_left_turn(at: int, last: int) -> tuple[int, int]:
    while not at & 1 and at:
        at, last = at >> 1, last >> 1
    return at, last
