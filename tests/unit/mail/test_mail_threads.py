"""Threads: In-Reply-To first, then References under the same subject; joined by the core's rule."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from fixtures.mail import mail, told
from upright.core.ids import ThreadId
from upright.core.mandate import Trust
from upright.core.routing import join
from upright_mail.keys import OWN, bare_subject, is_answer, own_id
from upright_mail.translate import Arrived


@dataclass(slots=True)
class Threads:
    """What the hub's store does with keys, by the same rule."""

    known: dict[str, ThreadId] = field(default_factory=dict)
    made: int = 0

    def place(self, raw: bytes) -> str:
        found = join(told(raw).context, self.known, Trust.STRANGER)
        self.made += found.thread is None
        thread = found.thread or ThreadId(f"th_{self.made}")
        self.known.update(dict.fromkeys(found.learn, thread))
        return thread


def sent(own: str, subject: str = "The harbor clock", **headers: str) -> bytes:
    return mail(Message_ID=f"<{own}@x.org>", Subject=subject, **headers)


@pytest.mark.feature("mail.threading")
@pytest.mark.case("SN/765")
def test_an_answer_is_in_the_thread_whatever_its_subject() -> None:
    threads = Threads()
    first = threads.place(sent("a"))
    assert threads.place(sent("b", "Quite another", In_Reply_To="<a@x.org>")) == first


@pytest.mark.feature("mail.threading")
@pytest.mark.case("SN/765")
def test_recycled_references_under_a_new_subject_begin_a_thread() -> None:
    threads = Threads()
    first = threads.place(sent("a"))
    assert threads.place(sent("b", "Lunch on Friday", References="<a@x.org>")) != first
    assert threads.place(sent("c", "Re: the  HARBOR clock", References="<a@x.org>")) == first


@pytest.mark.feature("mail.threading")
def test_an_answer_to_what_we_never_saw_is_found_by_what_that_answered() -> None:
    threads = Threads()
    first = threads.place(sent("a"))
    raw = sent(
        "c", "AW: The harbor clock", In_Reply_To="<b@x.org>", References="<a@x.org> <b@x.org>"
    )
    assert threads.place(raw) == first
    assert threads.place(sent("d", "new", In_Reply_To="<b@x.org>")) == first


@pytest.mark.feature("mail.threading")
def test_who_arrives_first_does_not_matter() -> None:
    threads = Threads()
    answer = threads.place(sent("b", "Re: The harbor clock", In_Reply_To="<a@x.org>"))
    assert threads.place(sent("a")) == answer


@pytest.mark.feature("mail.threading")
def test_one_subject_alone_is_no_thread() -> None:
    threads = Threads()
    assert threads.place(sent("a", "Invoice")) != threads.place(sent("b", "Invoice"))


@pytest.mark.feature("mail.threading")
def test_what_answers_our_own_mail_is_in_the_thread_that_ours_was_in() -> None:
    threads = Threads()
    first = threads.place(sent("a"))
    ours = own_id("key-1", "<a@x.org>", "harbor.example.org")
    assert OWN.fullmatch(ours)
    assert threads.place(sent("b", "Changed", In_Reply_To=ours)) == first
    other = own_id("key-2", "<elsewhere@x.org>", "harbor.example.org")
    assert threads.place(sent("c", "Changed", In_Reply_To=other)) != first


@pytest.mark.feature("mail.threading")
def test_our_own_mail_among_the_references_counts_for_an_answer_only() -> None:
    threads = Threads()
    first = threads.place(sent("a"))
    ours = own_id("key-1", "<a@x.org>", "harbor.example.org")
    assert threads.place(sent("b", "Re: The harbor clock", References=ours)) == first
    assert threads.place(sent("c", "Lunch on Friday", References=ours)) != first


@pytest.mark.feature("mail.threading")
def test_what_resembles_counts_only_where_nothing_else_does() -> None:
    plain = told(sent("b"), arrived=Arrived(resembles="<a@x.org>"))
    assert plain.context.thread == "mail:post/<a@x.org>"
    better = told(sent("c", In_Reply_To="<d@x.org>"), arrived=Arrived(resembles="<a@x.org>"))
    assert better.context.thread == "mail:post/<d@x.org>"
    assert "mail:post/<a@x.org>" not in better.context.joins


@pytest.mark.feature("mail.threading")
@pytest.mark.parametrize(
    "subject",
    ["Re: X", "RE: re: X", "AW: X", "Fwd: X", "[list] Re: X", "Re[2]: X", "回复\uff1aX", "x"],
)
def test_a_bare_subject_is_what_stands_behind_all_prefixes(subject: str) -> None:
    assert bare_subject(subject) == "x"
    assert is_answer(subject) == (subject != "x")


def test_a_mail_without_an_id_has_a_thread_and_a_key_of_what_it_says() -> None:
    one, same, other = (told(mail(text, Message_ID="")) for text in ("a", "a", "b"))
    assert one.dedupe == same.dedupe != other.dedupe
    assert one.dedupe[0].startswith("content:")
    assert one.context.thread != other.context.thread


def test_an_id_of_any_length_makes_a_key_of_bounded_length() -> None:
    long = told(mail(Message_ID=f"<{'x' * 800}@x.org>"))
    assert all(len(key) < 200 for key in (long.context.thread, *long.context.joins))


def test_the_address_of_an_answer_keeps_the_root_and_the_newest_references() -> None:
    many = " ".join(f"<r{n}@x.org>" for n in range(300))
    place = told(mail(References=many, In_Reply_To="<r299@x.org>")).context.reply_to
    assert place is not None
    kept = place.get("references").split()
    assert (kept[0], kept[-1], len(kept)) == ("<r0@x.org>", "<m-1@example.org>", 20)
