"""Finding: by words and by meaning, both orders merged, and each content once.

Whose eyes are looked through is a `Scope`: a caller's, or those of a session's agent. Nothing is read but
through it.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from unicodedata import normalize
from uuid import UUID

from django.conf import settings
from django.db.models import Q

from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.models.session import Session, Visibility
from sessions_app.querysets import is_theirs_or_shared
from sessions_app.search.models import Chunk
from sessions_app.search.plain import plain
from sessions_app.search.querysets import ChunkQuerySet

MOST_WORDS = 12
LOOKED_AT = 200  # chunks of an order
WIDER = (200, 2_000, 20_000)  # chunks of an order that are asked for, as long as few of them may be found
ENOUGH = 100
K = 60  # of reciprocal rank fusion: how much less the second counts than the first
AROUND = 140  # characters of an excerpt on each side of the first word
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Scope:
    """Which chunks may be found. What is in no session is its workspace's."""

    chunks: Q
    sessions: Q
    workspaces: Q  # in which all of them are

    @classmethod
    def of_caller(cls, caller: Caller) -> "Scope":
        mine = is_theirs_or_shared(caller, "manifest__session")
        chunks = caller.within("manifest__workspace") & (Q(manifest__session=None) | mine)
        return cls(chunks, caller.within("workspace") & is_theirs_or_shared(caller), caller.within())

    @classmethod
    def of_session(cls, session: Session) -> "Scope":
        """Its agent finds what whoever reads its answers may see: of a private one that is its author, of a
        shared one everybody in the workspace."""
        if session.bot_chat:
            return cls._of_bot(session)
        of_chunk = Q(manifest__session__visibility=Visibility.WORKSPACE)
        seen = Q(visibility=Visibility.WORKSPACE)
        if not session.is_shared and session.created_by_id is not None:
            of_chunk |= Q(manifest__session__created_by=session.created_by_id)
            seen |= Q(created_by=session.created_by_id)
        chunks = Q(manifest__workspace=session.workspace_id) & (Q(manifest__session=None) | of_chunk)
        return cls(chunks, Q(workspace=session.workspace_id) & seen, Q(pk=session.workspace_id))

    @classmethod
    def _of_bot(cls, session: Session) -> "Scope":
        """Whoever a bot lets in reads its answers: the files of the folder, and of chats its own alone."""
        here = {"source": session.source, "bot_chat": session.bot_chat}
        of_chunk = Q(manifest__session=None) | Q(**{f"manifest__session__{k}": v for k, v in here.items()})
        workspace = session.workspace_id
        whole = Q(manifest__workspace=workspace) & of_chunk
        return cls(whole, Q(workspace=workspace, **here), Q(pk=workspace))


@dataclass(frozen=True)
class Wish:
    """What is looked for, and where."""

    text: str
    kinds: tuple[str, ...] = ()
    tag: str = ""
    workspace: str = ""
    since: datetime | None = None
    limit: int = 20

    @property
    def words(self) -> list[str]:
        """Each once, in the order in which they were said. In one sign with its accent, which would else end
        a word, and for the same reason not made small: that of İ has two signs."""
        return list(dict.fromkeys(_WORD.findall(normalize("NFC", self.text))))[:MOST_WORDS]

    def narrows(self) -> Q:
        wanted = Q()
        if self.kinds:
            wanted &= Q(manifest__content_type__in=self.kinds)
        if self.tag:
            wanted &= Q(manifest__session__labels__tag=self.tag.lower())
        if self.workspace:
            wanted &= Q(manifest__workspace__slug=self.workspace)
        if self.since:
            wanted &= Q(manifest__changed_at__gte=self.since)
        return wanted


@dataclass
class Hit:
    content_id: str
    content_type: str
    title: str
    workspace: str
    session_id: UUID | None
    path: str
    changed_at: datetime
    shown: Chunk
    excerpt: str = ""
    marks: list[tuple[int, int]] = field(default_factory=list)
    score: float = 0.0
    ways: set[str] = field(default_factory=set)

    def show(self, chunk: Chunk) -> None:
        """The first that is no title stays."""
        if self.shown.field == "title" != chunk.field:
            self.shown = chunk

    @property
    def matched(self) -> str:
        return "both" if len(self.ways) > 1 else next(iter(self.ways))


def find(scope: Scope, wish: Wish) -> list[Hit]:
    if not wish.words:
        return []
    hits: dict[str, Hit] = {}
    _add(hits, "text", _by_words(scope, wish))
    if settings.PARACHUTE_EMBEDDER:
        _add(hits, "meaning", _by_meaning(scope, wish))
    best = sorted(hits.values(), key=lambda hit: -hit.score)[: wish.limit]
    for hit in best:
        hit.excerpt, hit.marks = excerpt(hit.shown.text, wish.words)
    return best


def _by_words(scope: Scope, wish: Wish) -> Sequence[Chunk]:
    """Those with all of the words; where there are few, those with some of them behind these."""

    def having(*, all_of_them: bool) -> list[Chunk]:
        order = partial(Chunk.objects.with_words, wish.words, all_of_them=all_of_them)
        found = _to_be_found(scope, wish, lambda most: order(most=most))
        if found.is_all:
            return found.chunks
        known = {chunk.pk for chunk in found.chunks}
        others = found.allowed.having(wish.words, all_of_them=all_of_them)[:LOOKED_AT]
        return [*found.chunks, *(chunk for chunk in others if chunk.pk not in known)]

    every = having(all_of_them=True)
    if len(every) >= wish.limit or len(wish.words) == 1:
        return every
    known = {chunk.pk for chunk in every}
    return [*every, *(chunk for chunk in having(all_of_them=False) if chunk.pk not in known)]


def _by_meaning(scope: Scope, wish: Wish) -> Sequence[Chunk]:
    from sessions_app.search import meaning

    workspaces = Workspace.objects.filter(scope.workspaces)
    if wish.workspace:
        workspaces = workspaces.filter(slug=wish.workspace)
    nearest = meaning.Nearest(wish.text, set(workspaces.values_list("pk", flat=True)))
    found = _to_be_found(scope, wish, nearest.first).chunks
    if nearest.are_of(found):
        return found
    meaning.make_anew()
    return []


@dataclass
class ToBeFound:
    chunks: list[Chunk]
    allowed: ChunkQuerySet  # of which they are the first
    is_all: bool  # False: so many others were before them that some were not come to


def _to_be_found(scope: Scope, wish: Wish, first: Callable[[int], Sequence[int]]) -> ToBeFound:
    """Of an order of all chunks, the first that may be found and are wished for. An order is made without
    looking at whose they are: to ask that of each chunk that has a word costs more than the words do."""
    allowed = Chunk.objects.filter(scope.chunks, wish.narrows()).as_found()
    found: list[Chunk] = []
    for most in WIDER:
        order = first(most)
        chunks = allowed.in_bulk(order)
        found = [chunks[pk] for pk in order if pk in chunks]
        if len(order) < most or len(found) >= ENOUGH:
            return ToBeFound(found[:LOOKED_AT], allowed, is_all=True)
    return ToBeFound(found, allowed, is_all=False)


def _add(hits: dict[str, Hit], way: str, found: Iterable[Chunk]) -> None:
    """Each content counts by its best chunk, which is also what is shown of it; where that is its title,
    which stands above it anyway, the best of what it says."""
    seen = set[str]()
    for chunk in found:
        manifest = chunk.manifest
        if manifest.pk in seen:
            hits[manifest.pk].show(chunk)
            continue
        seen.add(manifest.pk)
        hit = hits.get(manifest.pk)
        if hit is None:
            hit = hits[manifest.pk] = Hit(
                content_id=manifest.pk,
                content_type=manifest.content_type,
                title=manifest.title,
                workspace=manifest.workspace.slug,
                session_id=manifest.session_id,
                path=manifest.path,
                changed_at=manifest.changed_at,
                shown=chunk,
            )
        hit.show(chunk)
        hit.score += 1 / (K + len(seen))
        hit.ways.add(way)


def excerpt(text: str, words: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """A part of what the text says around the first of the words, and where in it they stand."""
    text = plain(text)
    pattern = re.compile("|".join(rf"(?<![^\W_]){re.escape(word)}" for word in words), re.IGNORECASE)
    first = pattern.search(text)
    start = max(0, first.start() - AROUND) if first else 0
    shown = text[start : start + 2 * AROUND]
    if start:
        shown = f"…{shown}"
    if start + 2 * AROUND < len(text):
        shown += "…"
    return shown, [match.span() for match in pattern.finditer(shown)]
