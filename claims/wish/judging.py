"""What a wish asks that the cluster or the person's teams can't give, by facts that were read. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from claims.refusals import Code, Refusal, quoted, refuse
from claims.wish.classes import closed, out_of_bounds
from claims.wish.facts import CAPACITY, EXTENDED, PARTS, PRIORITIZED_LIST, TAINTS, Bounds, ClassFacts
from claims.wish.keys import LABELS
from claims.wish.values import SHARE_STEP, WHOLE, Choice, ConstraintKind, Mode, Owner, Style, Wish
from dra.names import MAX_LABEL
from dra.quantity import Quantity


def judge(wish: Wish, bounds: Bounds) -> tuple[Refusal, ...]:
    """What the person's teams and the class can't give. A whole device too small is no refusal: nodes may be added."""
    return tuple(_impossible(wish, bounds))


def misnamed(values: Mapping[str, str], bounds: Bounds) -> tuple[Refusal, ...]:
    """What a query names that is not there for this person, where the query is no wish for other reasons."""
    return tuple(_misnamed(values.get("ns", ""), values.get("class", ""), bounds))


def _misnamed(namespace: str, device_class: str, bounds: Bounds) -> Iterator[Refusal]:
    if namespace and namespace not in bounds.namespaces:
        yield refuse(Code.NAMESPACE_FOREIGN, "ns", value=quoted(namespace))
    if device_class and device_class not in bounds.classes:
        yield refuse(Code.CLASS_UNKNOWN, "class", value=quoted(device_class))


def _impossible(wish: Wish, bounds: Bounds) -> Iterator[Refusal]:
    if wish.namespace not in bounds.namespaces:
        yield refuse(Code.NAMESPACE_FOREIGN, "ns", value=quoted(wish.namespace))
    yield from _lacking(wish, bounds)
    if wish.until and bounds.today and wish.until < bounds.today:
        yield refuse(Code.DAY_PAST, "until", label=LABELS["until"], value=wish.until, today=bounds.today)
    for number, choice in enumerate(wish.choices):
        yield from _impossible_choice(choice, bounds, wish.namespace, f"alt.{number}." if number else "")
    facts = bounds.classes.get(wish.device_class)
    if facts is None:
        return
    yield from _unserved_config(wish, facts)
    if wish.style is Style.EXTENDED:
        yield from _unsayable(wish, facts)


def _lacking(wish: Wish, bounds: Bounds) -> Iterator[Refusal]:
    """What the API server would leave out of the claim without a word, since a feature gate of it is off."""
    needed = [
        ("alt", PRIORITIZED_LIST, bool(wish.alternatives)),
        ("toleration", TAINTS, bool(wish.tolerations)),
        ("constraint", CAPACITY, any(each.kind is ConstraintKind.DISTINCT for each in wish.constraints)),
        ("style", EXTENDED, wish.style is Style.EXTENDED),
    ]
    for number, choice in enumerate(wish.choices):
        mode = f"alt.{number}.mode" if number else "mode"
        needed.append((mode, CAPACITY, choice.mode in PARTS))
    for key, gate, asked in needed:
        if asked and gate in bounds.lacking:
            yield refuse(Code.CLUSTER_LACKS, key, reason=bounds.lacking[gate])


def _unserved_config(wish: Wish, facts: ClassFacts) -> Iterator[Refusal]:
    """Configuration that no driver, or not this one, takes."""
    if wish.interval and wish.mode is not Mode.TIMESLICED:
        yield refuse(Code.INTERVAL_MODE, "interval", value=wish.interval)
        return
    for key, given in (("strategy", wish.strategy), ("interval", wish.interval)):
        if given and not facts.driver:
            yield refuse(Code.STRATEGY_NO_DRIVER, key, device_class=wish.device_class)
        elif given and not facts.configurable:
            yield refuse(Code.CONFIG_FOREIGN, key, label=LABELS[key], value=given, driver=facts.driver)


def _impossible_choice(choice: Choice, bounds: Bounds, namespace: str, prefix: str) -> Iterator[Refusal]:
    if choice.share < WHOLE and choice.count > 1:
        yield refuse(Code.SHARE_OF_MANY, f"{prefix}share", count=choice.count, share=choice.share)
    facts = bounds.classes.get(choice.device_class)
    if facts is None:
        yield refuse(Code.CLASS_UNKNOWN, f"{prefix}class", value=quoted(choice.device_class))
        return
    refusal = closed(facts, namespace, f"{prefix}class")
    if refusal and namespace in bounds.namespaces:
        yield refusal
        return
    yield from out_of_bounds(choice, facts, prefix)
    if choice.memory and facts.largest_memory and choice.share < WHOLE:
        yield from _over_share(choice.memory, choice.share, facts.largest_memory, f"{prefix}memory")


def _unsayable(wish: Wish, facts: ClassFacts) -> Iterator[Refusal]:
    """What a pod that names an extended resource can't say: it names a class and a count, and nothing else."""
    said = {
        "mode": wish.mode is not Mode.WHOLE,
        "memory": wish.memory,
        "strategy": wish.strategy,
        "interval": wish.interval,
        "claim": wish.owner is not Owner.OWN,
        "alt": wish.alternatives,
        "cel": wish.cel,
        "constraint": wish.constraints,
        "toleration": wish.tolerations,
    }
    yield from (refuse(Code.STYLE_UNSAYABLE, key, label=LABELS[key]) for key, value in said.items() if value)
    if facts.selectors:
        yield refuse(Code.STYLE_PART, "style", gpu_class=facts.name, device_class=facts.device_class)
    elif not facts.extended_resource and len(facts.device_class) > MAX_LABEL:
        yield refuse(Code.STYLE_NO_NAME, "style", device_class=facts.device_class, most=MAX_LABEL)


def _over_share(memory: Quantity, share: int, total: Quantity, field: str) -> Iterator[Refusal]:
    """`memory` that a share can't have: prepare would fail for every pod of the template."""
    if memory.value * WHOLE <= total.value * share:
        return
    if memory.value > total.value:
        yield refuse(Code.MEMORY_OVER_DEVICE, field, memory=memory, total=gib(total.value))
        return
    steps = -(-memory.value * WHOLE // (total.value * SHARE_STEP))
    yield refuse(
        Code.MEMORY_OVER_SHARE,
        field,
        memory=memory,
        share=share,
        part=gib(total.value * share // WHOLE),
        total=gib(total.value),
        enough=steps * SHARE_STEP,
    )


def gib(amount: int) -> str:
    """Bytes as people read them, rounded down to a tenth of a GiB, so that what is said always fits."""
    tenths = amount * 10 // 2**30
    return f"{tenths // 10}.{tenths % 10} GiB" if tenths % 10 else f"{tenths // 10} GiB"
