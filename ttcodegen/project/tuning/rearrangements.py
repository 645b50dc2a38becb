"""Detection of moved calls, and of replacements by equivalent calls, in edited C++."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ttcodegen.emission.manifest_entries import LoweredOp
from ttcodegen.project.tuning.edited_files import (
    EditedFile,
    MovedCall,
    OpIndex,
    ReplacedCalls,
    TextEdits,
    line_of_comment,
    new_comments,
)
from ttcodegen.project.tuning.meanings import same_meaning
from ttcodegen.project.tuning.order import blocks, order_conflict, plain, read
from ttcodegen.project.tuning.statements import (
    Constant,
    Statement,
    applied_after,
    statements,
)

Pair = tuple[Statement, Statement]
"""Statement as generated, and as edited."""


@dataclass
class Rearrangement:
    """Removed and added statements of a line-by-line alignment.

    Args:
        file: the file.
        index: ops of the generated file.
        pairs: aligned statements; moved ones are added.
        gone: removed statements; those explained by decisions are dropped.
        added: added statements; likewise.
    """

    file: EditedFile
    index: OpIndex
    pairs: list[Pair]
    gone: list[Statement]
    added: list[Statement]

    def take_moved(self) -> set[str]:
        """Finds moved calls; returns the variables whose last use may have changed."""
        moved: list[Pair] = []
        for old in list(self.gone):
            new = self._moved_to(old)
            if new is not None:
                moved.append((old, new))
                self.gone.remove(old)
                self.added.remove(new)
        if not moved:
            return set()
        blocks_before, blocks_now = blocks(self.file.before), blocks(self.file.after)
        known = sorted([*self.pairs, *moved], key=lambda pair: pair[1].start)
        places = {id(old): number for number, (old, _) in enumerate(known)}
        reads: set[str] = set()
        for old, new in sorted(moved, key=lambda pair: pair[1].start):
            here = [pair for pair in known if pair[0].function == old.function]
            passed = [
                each
                for each, _ in here
                if (each.start < old.start) != (places[id(each)] < places[id(old)])
            ]
            same_block = blocks_before[old.start] == blocks_now[new.start]
            if not same_block or order_conflict(old, passed, self.file.before) is not None:
                self.gone.append(old)
                self.added.append(new)
                continue
            self.pairs.append((old, new))
            reads |= {path.partition(".")[0].partition("[")[0] for path in read(old)}
            self.file.moved.append(self._moved(old, new, here, {id(o) for o, _ in moved}))
        return reads - {path for each in self.added for path in read(each)}

    def _moved_to(self, old: Statement) -> Statement | None:
        if old.call is None or not old.function or old.words[0] == "return":
            return None
        same = [each for each in self.added if each.function == old.function and each.call]
        exact = [each for each in same if plain(each.words) == plain(old.words)]
        if exact:
            return exact[0]
        alike = [
            each
            for each in same
            if old.target is not None
            and each.target == old.target
            and each.is_declaration == old.is_declaration
            and each.call is not None
            and each.call.callee == old.call.callee
            and each.variables == old.variables
        ]
        return alike[0] if len(alike) == 1 else None

    def _moved(
        self, old: Statement, new: Statement, here: Sequence[Pair], moved: Container[int]
    ) -> MovedCall:
        calls = [(o, n) for o, n in here if o.call is not None and o.words[0] != "return"]
        previous = [o for o, n in calls if n.start < new.start]
        following = [o for o, n in calls if n.start > new.start and id(o) not in moved]
        return MovedCall(
            self.file.path,
            self.index.at(old),
            old,
            previous[-1] if previous else None,
            following[0] if following else None,
            (self._named(reversed(previous)), self._named(following)),
            tuple(comment for _, _, comment in self._own_comments(old, new)),
            self.file.after.count("\n", 0, new.start) + 1,
        )

    def _own_comments(self, old: Statement, new: Statement) -> list[tuple[int, int, str]]:
        """User's comments at a moved statement, without headings that it is below now."""
        generated = {c.text for each in statements(self.file.before) for c in each.comments}
        return [
            (start, end, text)
            for start, end, text in new_comments(old, new)
            if self.file.after[start:end] not in generated
        ]

    def _named(self, calls: Iterable[Statement]) -> tuple[LoweredOp, ...]:
        """Ops of the first call that has any."""
        return next((ops for each in calls if (ops := self.index.at(each))), ())

    def take_replaced(
        self,
        unresolved: Sequence[Pair],
        constants: Mapping[str, Constant],
        generated: Mapping[str, Constant],
    ) -> list[Pair]:
        """Finds calls that were replaced by equivalent ones; returns their result statements.

        Args:
            unresolved: pairs of calls that differ by more than decisions.
            constants: the constants of tuning.hpp by name.
            generated: the generated constants.
        """
        found: list[Pair] = []
        lasts = [(old, new, self._last_of(new)) for old, new in unresolved]
        kept = {id(last): new for _, new, last in lasts if last is not None}
        """Calls that keep their place, by those that give their result now."""
        pairs = [(old, last) for old, _, last in lasts if last is not None]
        for old, new in (*unresolved, *pairs, *self._same_results()):
            if old.call is None or new.call is None or old.target is None:
                continue
            if any(old is before or new is after for before, after in found):
                continue
            if plain(old.words) == plain(new.words):
                continue
            before = self._inner(old, self.gone, statements(self.file.before))
            added = [*self.added, *([kept[id(new)]] if id(new) in kept else [])]
            after = self._inner(new, added, statements(self.file.after))
            if not _has_other_calls(before, after):
                continue
            if not same_meaning(before, after, constants, generated):
                continue
            passed = self._passed(old, new)
            if passed and not self._take_place(old, new, passed):
                continue
            self.gone = [each for each in self.gone if each not in before]
            self.added = [each for each in self.added if each not in after]
            found.append((old, new))
            ops = dict.fromkeys(op for each in before for op in self.index.at(each))
            old_comments = [c.text for each in before for c in each.comments]
            self.file.replaced.append(
                ReplacedCalls(
                    self.file.path,
                    tuple(ops),
                    before,
                    after,
                    tuple(self.file.after[each.start : each.end] for each in after),
                    tuple(self.index.at(each) for each in before),
                    tuple(
                        text
                        for each in after
                        for start, end, text in new_comments(None, each)
                        if self.file.after[start:end] not in old_comments
                    ),
                    self.file.after.count("\n", 0, new.start) + 1,
                    _taken_out(before, after, constants, generated),
                    tuple(applied_after(each, generated) for each in before),
                )
            )
        return found

    def _last_of(self, new: Statement) -> Statement | None:
        """Last added call that assigns the variable of another one again; None without one."""
        again = [
            each
            for each in self.added
            if each.function == new.function and each.target == new.target is not None
            if each.start > new.start and each.call is not None and not each.is_declaration
        ]
        return again[-1] if again else None

    def _same_results(self) -> Iterator[Pair]:
        """Calls that assign the variable of a removed one, the last of them first."""
        for old in list(self.gone):
            for new in reversed(self.added):
                same = new.function == old.function and new.target == old.target is not None
                if same and old.call and new.call:
                    yield old, new

    def _passed(self, old: Statement, new: Statement) -> list[Statement]:
        """Statements of the function on whose other side a statement is now."""
        moved = {id(each.statement) for each in self.file.moved}
        return [
            o
            for o, n in self.pairs
            if o.function == old.function and o is not old and id(o) not in moved
            if (o.start < old.start) != (n.start < new.start)
        ]

    def _take_place(self, old: Statement, new: Statement, passed: Sequence[Statement]) -> bool:
        """Adds the move of a replaced call; returns whether it may be where it is now."""
        same_block = blocks(self.file.before)[old.start] == blocks(self.file.after)[new.start]
        if not same_block or order_conflict(old, passed, self.file.before) is not None:
            return False
        known = sorted([*self.pairs, (old, new)], key=lambda pair: pair[1].start)
        here = [pair for pair in known if pair[0].function == old.function]
        moved = {id(old), *(id(each.statement) for each in self.file.moved)}
        self.pairs.append((old, new))
        self.file.moved.append(self._moved(old, new, here, moved))
        return True

    def _inner(
        self, last: Statement, candidates: Sequence[Statement], listed: Sequence[Statement]
    ) -> tuple[Statement, ...]:
        """Group of calls whose results are read only within the group that ends in `last`."""
        group = [last]
        for each in sorted(candidates, key=lambda c: -c.start):
            if each.function != last.function or each.start >= last.start or not each.target:
                continue
            if each.target not in {v for inside in group for v in read(inside)}:
                continue
            later = [s for s in listed if s.function == each.function and s.start > each.start]
            readers: list[Statement] = []
            for other in later:
                if each.target in read(other):
                    readers.append(other)
                if other.target == each.target:
                    break
            if all(reader in group for reader in readers):
                group.append(each)
        return tuple(sorted(group, key=lambda s: s.start))

    def edits(self, found: Sequence[Pair]) -> TextEdits:
        """Edits that revert the rearrangements; `found` are the pairs of replaced calls."""
        edits: TextEdits = []
        new_of = {id(old): new for old, new in self.pairs}
        restored: list[Statement] = [each.statement for each in self.file.moved]
        for each in self.file.moved:
            new = new_of[id(each.statement)]
            edits.append((*line_of_comment(self.file.after, new.start, new.end), ""))
            for start, end, _ in self._own_comments(each.statement, new):
                edits.append((*line_of_comment(self.file.after, start, end), ""))
        for group in self.file.replaced:
            restored += group.before[:-1]
            for each in group.after[:-1]:
                edits.append((*line_of_comment(self.file.after, each.start, each.end), ""))
        moved = {id(each.statement) for each in self.file.moved}
        for old, new in found:
            if id(old) not in moved:
                edits.append((new.start, new.end, self.file.before[old.start : old.end]))
        known = {id(old): new for old, new in (*self.pairs, *found)}
        for each in restored:
            known.pop(id(each), None)
        return [*edits, *restored_statements(self.file, restored, known)]


def _has_other_calls(before: Sequence[Statement], after: Sequence[Statement]) -> bool:
    """Returns whether calls differ, not only settings of a single call.

    Such edits are decisions of that call, whose text stays as the user formatted it.
    """
    if len(before) != 1 or len(after) != 1:
        return True
    old, new = before[0].call, after[0].call
    if old is None or new is None or old.callee != new.callee:
        return True
    return before[0].variables != after[0].variables


def _taken_out(
    before: Sequence[Statement],
    after: Sequence[Statement],
    constants: Mapping[str, Constant],
    generated: Mapping[str, Constant],
) -> str:
    """Activation that is called after a call which applied it; empty for other replacements."""
    applied = applied_after(before[0], generated)
    if not applied or len(before) > 1 or len(after) != 2 or applied_after(after[0], constants):
        return ""
    callees = [each.call.callee.rpartition("::")[2] for each in (*before, *after) if each.call]
    return applied if callees[:1] == callees[1:2] and callees[2:] == [applied] else ""


def restored_statements(
    file: EditedFile, restored: Sequence[Statement], places: Mapping[int, Statement]
) -> TextEdits:
    """Edits that reinsert removed statements after their predecessors.

    Args:
        file: the file.
        restored: statements of the generated file.
        places: current versions of the other statements, by identity of the generated ones.
    """
    wanted = {id(each) for each in restored}
    edits: TextEdits = []
    listed = statements(file.before)
    for index, each in enumerate(listed):
        if id(each) not in wanted or (index and id(listed[index - 1]) in wanted):
            continue
        last = index
        while last + 1 < len(listed) and id(listed[last + 1]) in wanted:
            last += 1
        place = places.get(id(listed[index - 1])) if index else None
        if place is not None:
            following = listed[last + 1] if last + 1 < len(listed) else None
            start, end = listed[index - 1].end, place.end
            heading = _heading_left(file.after, place, each, following)
            if heading is not None:
                start, end = heading
            edits.append((end, end, file.before[start : listed[last].end]))
    return edits


def _heading_left(
    after: str, place: Statement, removed: Statement, following: Statement | None
) -> tuple[int, int] | None:
    """Ends of a removed statement's heading, as generated and as it is left; None if it is gone.

    Args:
        after: the edited file.
        place: the statement before it there.
        removed: the statement as generated.
        following: the next statement as generated.
    """
    listed = statements(after)
    index = bisect_right(listed, place.start, key=lambda each: each.start)
    if index == len(listed):
        return None
    # Its own heading is also that of the next statement.
    own = Counter(each.text for each in (following.comments if following else ()))
    own += Counter(each.text for each in place.comments if each.start > place.end)
    left = [each for each in listed[index].comments if each.start >= place.end]
    above = [each for each in removed.comments if each.end <= removed.start]
    spare = Counter(each.text for each in left) - own
    if not above or any(not spare[each.text] for each in above):
        return None
    end = next(each.end for each in left if each.text == above[-1].text)
    return above[-1].end, end


def is_explained(file: EditedFile, gone: Sequence[Statement], added: Sequence[Statement]) -> bool:
    """Returns whether decisions explain all edits of a file.

    Args:
        file: the file, with the decisions that were found.
        gone: removed statements without an explaining decision.
        added: added ones.
    """
    if gone or added:
        return False
    decided = (*file.calls, *file.replaced, *file.moved)
    said = {each.line: each.comments for each in decided if each.comments}
    before, after = (
        Counter(
            comment.text.removeprefix("//").strip()
            for each in statements(text)
            for comment in each.comments
        )
        for text in (file.before, file.after)
    )
    # Headings may go with what they are above.
    above = (*(m.statement for m in file.moved), *(s for g in file.replaced for s in g.before))
    headings = Counter(c.text.removeprefix("//").strip() for each in above for c in each.comments)
    return (
        after - before == Counter(c for comments in said.values() for c in comments)
        and before - after <= headings
    )
