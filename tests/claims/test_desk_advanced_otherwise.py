"""Alternatives on the form: rows that grow, what each has by itself, moving and removing by links, faults in place."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.claims.desk import form_page, is_open, linked, part, value_of, words
from tests.claims.rows import CEL, CLASS, device_class, put, put_gpu_class
from tests.claims.test_fit import hold

pytestmark = pytest.mark.usefixtures("fleet")
MIG = CEL.replace("Physical", "MIG")
TWO = "&alt.1.class=h100-shared&alt.1.count=2&alt.2.class=slices&alt.2.mode=slice&alt.2.profile=1g.10gb"


@pytest.fixture(autouse=True)
def _slices(fleet: None) -> None:
    put("DeviceClass", device_class("slices", MIG))


def alternatives(client: Client, more: str = "", *, status: int = 200) -> str:
    return part(form_page(client, more, status=status), "otherwise")


def test_without_any_it_is_folded_and_has_one_empty_row(as_alice: Client) -> None:
    html = alternatives(as_alice)
    assert not is_open(html)
    assert value_of(html, "alt.1.class") == ""
    assert value_of(html, "alt.1.count") is None
    assert value_of(html, "alt.2.class") is None


def test_those_given_are_shown_unfolded_with_an_empty_row_after_them(as_alice: Client) -> None:
    html = alternatives(as_alice, TWO)
    assert is_open(html)
    assert value_of(html, "alt.1.class") == "h100-shared"
    assert value_of(html, "alt.1.count") == "2"
    assert value_of(html, "alt.2.profile") == "1g.10gb"
    assert value_of(html, "alt.3.class") == ""


def test_a_row_asks_only_what_its_mode_reads(as_alice: Client) -> None:
    html = alternatives(as_alice, f"{TWO}&alt.3.class=h100-shared&alt.3.mode=share")
    assert value_of(html, "alt.1.memory") == ""
    assert value_of(html, "alt.1.profile") is None
    assert value_of(html, "alt.2.memory") is None
    assert value_of(html, "alt.3.share") == "50"
    assert value_of(html, "alt.3.count") is None


def test_memory_is_a_floor_of_whole_devices_and_a_bound_of_shares(as_alice: Client) -> None:
    said = words(alternatives(as_alice, "&alt.1.class=h100-shared&alt.2.class=h100-shared&alt.2.mode=share"))
    assert "Memory, at least of alternative 1" in said
    assert "Memory, at most of alternative 2" in said


def test_a_class_that_is_not_there_is_said_beside_other_mistakes(as_alice: Client) -> None:
    html = alternatives(as_alice, "&alt.1.class=nothing&count=0", status=422)
    assert "The cluster has no GPU class of that name." in words(html)


def test_seven_are_the_most_and_an_eighth_is_refused_in_its_row(as_alice: Client) -> None:
    seven = "".join(f"&alt.{number}.class=h100-shared" for number in range(1, 8))
    assert value_of(alternatives(as_alice, seven), "alt.8.class") is None
    html = alternatives(as_alice, f"{seven}&alt.8.class=h100-shared", status=422)
    assert 'id="error-alt.8.class"' in html
    assert "At most 7 can be given." in words(html)


def test_each_says_what_is_free_and_whether_it_fits_by_itself(as_alice: Client) -> None:
    """One card is held: two cards can't be had, slices of the other one can."""
    hold(0)
    said = words(alternatives(as_alice, TWO))
    assert "The first choice: By itself it fits on 1 node now." in said
    assert "1 free, at most 1 on one node. By itself it does not fit now." in said
    assert "7 free, at most 7 on one node. By itself it fits on 1 node now." in said


def test_a_class_that_ends_the_search_is_said(as_alice: Client) -> None:
    put("DeviceClass", device_class("careless", 'device.attributes["gpu.portico.dev"].nothing == "x"'))
    html = part(form_page(as_alice, "&alt.1.class=careless", status=422), "otherwise")
    assert "careless can't be served. Kubernetes would place no pod that asks for it" in words(html)


def test_a_class_of_an_administrator_is_offered_by_its_title(as_alice: Client) -> None:
    put_gpu_class(CLASS, title="Large cards")
    assert "Large cards (2 free)" in words(alternatives(as_alice))


def test_one_is_moved_up_past_the_one_before_or_the_first_choice(as_alice: Client) -> None:
    html = alternatives(as_alice, TWO)
    first, second = linked(html, "Move up")
    assert first == {
        "class": "h100-shared",
        "count": "2",
        "alt.1.class": "physical-gpu",
        "alt.1.count": "1",
        "alt.1.share": "100",
        "alt.2.class": "slices",
        "alt.2.mode": "slice",
        "alt.2.profile": "1g.10gb",
    }
    assert second == {
        "alt.1.class": "slices",
        "alt.1.mode": "slice",
        "alt.1.profile": "1g.10gb",
        "alt.2.class": "h100-shared",
        "alt.2.count": "2",
    }


def test_one_is_removed_and_those_after_it_move_up(as_alice: Client) -> None:
    html = alternatives(as_alice, TWO)
    assert linked(html, "Remove") == [
        {"alt.1.class": "slices", "alt.1.mode": "slice", "alt.1.profile": "1g.10gb"},
        {"alt.1.class": "h100-shared", "alt.1.count": "2"},
    ]


def test_a_row_that_was_cleared_stays_where_it_is(as_alice: Client) -> None:
    html = alternatives(as_alice, TWO.replace("class=h100-shared", "class="))
    assert value_of(html, "alt.1.class") == ""
    assert value_of(html, "alt.2.class") == "slices"
    assert "Move up alternative 1" not in words(html)


@pytest.mark.parametrize(
    ("more", "key", "said"),
    [
        ("&alt.1.class=nothing", "alt.1.class", "“nothing” can't be asked for."),
        ("&alt.2.class=h100-shared&alt.2.count=40", "alt.2.count", "“40” can't be the count."),
        ("&alt.3.class=nothing", "alt.3.class", "“nothing” can't be asked for."),
        ("&alt.1.class=slices&alt.1.mode=slice&alt.1.profile=tiny", "alt.1.profile", "“tiny” is no slice profile."),
        ("&alt.1.class=h100-shared&alt.1.mode=half", "alt.1.mode", "“half” can't be chosen."),
        ("&alt.1.class=h100-shared&alt.1.memory=lots", "alt.1.memory", "“lots” is no amount of memory."),
    ],
)
def test_what_is_wrong_is_said_in_its_row_and_linked_from_the_summary(
    as_alice: Client, more: str, key: str, said: str
) -> None:
    """A gap in the numbers does not lead to another row."""
    page = form_page(as_alice, more, status=422)
    html = part(page, "otherwise")
    assert is_open(html)
    assert f'id="error-{key}"' in html
    assert said in words(html)
    assert f'<a href="#field-{key}">' in page
    assert f'id="field-{key}"' in html


def test_what_an_extended_resource_can_not_say_is_said_at_the_part(as_alice: Client) -> None:
    html = alternatives(as_alice, f"{TWO}&style=extended", status=422)
    assert "can't be said by an extended resource" in words(html)


def test_a_class_that_is_closed_can_not_be_chosen_and_says_why(as_alice: Client) -> None:
    put_gpu_class("paused", title="Old cards", state="paused", message="They move.", deviceClass={"name": "anything"})
    put_gpu_class("theirs", title="Their cards", namespaces=["inference-team"], deviceClass={"name": "anything"})
    html = alternatives(as_alice)
    assert '<option value="paused" disabled>Old cards: paused is paused.</option>' in html
    assert '<option value="theirs" disabled>Their cards: theirs can&#x27;t be asked for in “ml-team”.</option>' in html
