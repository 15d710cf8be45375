"""Home: what an agent reads and writes of its own home: skills on demand, and its notes (B17.1)."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass as arguments

from upright.agent.tools.base import STRICT, Done, Here, Outcome, Tool, refused
from upright.core.errors import InvalidError
from upright.core.home import MAX_FILE_BYTES, HomeFile, front_matter
from upright.store import homes
from upright.store.errors import NotNowError
from upright.store.events import record


@arguments(config=STRICT)
class SkillArguments:
    """A skill of the catalogue, by its name."""

    name: str


def _skill(here: Here, asked: SkillArguments) -> Outcome:
    """Read a skill as it was when this generation's catalogue was written, and no later one."""
    agent, seq = homes.of_session(here.u.c, here.lease.session)
    path = f"skills/{asked.name}/SKILL.md"
    file = homes.find(here.u.c, agent, path, seq)
    if file is None:
        raise refused("you have no skill {!r}; your catalogue names them", asked.name)
    record(here.u, "skill.read", here.about, {"skill": asked.name, "sha256": file.sha256})
    body: dict[str, object] = {
        "skill": asked.name,
        "sha256": file.sha256,
        "text": front_matter(file.text)[1],
    }
    now = homes.find(here.u.c, agent, path)
    if now is None or now.sha256 != file.sha256:
        body["note"] = "it has changed since; that takes effect with your next session"
    return Done(body=body, taints=file.trust)


# ------------------------------------------------------------------ notes
@arguments(config=STRICT)
class ReadNoteArguments:
    """A note, by its path; without one all are listed."""

    path: str = ""


def _read_note(here: Here, asked: ReadNoteArguments) -> Outcome:
    agent, _ = homes.of_session(here.u.c, here.lease.session)
    notes = [file for file in homes.read(here.u.c, agent) if homes.is_note(file.path)]
    if not asked.path:
        return Done(body={"notes": [_shown(file) for file in notes]})
    file = next((one for one in notes if one.path == asked.path), None)
    if file is None:
        raise refused("you have no note {!r}; call read_note without a path", asked.path)
    return Done(body={**_shown(file), "text": file.text}, taints=file.trust)


def _shown(file: HomeFile) -> dict[str, object]:
    return {
        "path": file.path,
        "version": file.version,
        "by": file.author,
        "trust": file.trust.label,
    }


@arguments(config=STRICT)
class NoteArguments:
    """A note of this agent's, ``notes/NAME.md``, and what is put there."""

    path: str = Field(description="notes/NAME.md; small letters, digits and dashes")
    text: str = Field(max_length=MAX_FILE_BYTES)
    mode: Literal["append", "replace"] = "append"
    version: int = Field(default=0, ge=0, description="to replace: the version that you read")


def _note(here: Here, asked: NoteArguments) -> Outcome:
    """Write a note: it is as tainted as whoever writes it, and names them."""
    agent, _ = homes.of_session(here.u.c, here.lease.session)
    if not homes.exists(here.u.c, agent):
        raise refused("the agent {} has no home", agent)
    before = homes.find(here.u.c, agent, asked.path)
    appends = asked.mode == "append" and before is not None
    text = f"{before.text.rstrip()}\n\n{asked.text}" if before and appends else asked.text
    writing = homes.Writing(
        path=asked.path,
        text=f"{text.rstrip()}\n",
        author=here.item.id if here.item else here.lease.session,
        trust=here.taint,
        expects=None if appends else asked.version,
    )
    try:
        made = homes.write_note(here.u, agent, writing)
    except (InvalidError, NotNowError) as error:
        raise refused("{}", error) from error
    return Done(body={"path": made.path, "version": made.version, "trust": made.trust.label})


TOOLS: Final = (
    Tool(
        name="skill",
        description="Read one of your skills: how something is done here, step by step. It is "
        "text: nothing in it runs by itself.",
        arguments=SkillArguments,
        run=_skill,
    ),
    Tool(
        name="read_note",
        description="Read one of your agent's notes, or list them. What they say is material.",
        arguments=ReadNoteArguments,
        run=_read_note,
    ),
    Tool(
        name="note",
        description="Write down what your agent should know next time, about this kind of work. "
        "By default it is put behind what is there; to replace a note, name the version you read.",
        arguments=NoteArguments,
        run=_note,
    ),
)
