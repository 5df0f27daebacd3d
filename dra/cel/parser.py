"""Reads an expression into a syntax tree, macros expanded. Knows no types.

The grammar and the limits on nesting are those of cel-go parser/gen/CEL.g4 and parser/parser.go: 250 nested uses of one
grammar rule, 250 nested operators and selections, 100,000 code points. Python's own limit on recursion may end in
RecursionError before that, from a hundred nested brackets on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NoReturn

from dra.cel import literals
from dra.cel.ast import Call, Entry, Field, Ident, ListNode, Literal, MapNode, Node, Select, StructNode
from dra.cel.errors import CelSyntaxError
from dra.cel.lexer import Kind, Token, tokens
from dra.cel.macros import Builder, MacroError, expand
from dra.cel.places import place

MAX_DEPTH: Final = 250
MAX_CODE_POINTS: Final = 100_000
MAX_NODES: Final = 60_000  # ours: optMap repeats its target, so that a chain of them doubles with every link
_RESERVED: Final = {
    *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop"),
    *("package", "namespace", "null", "return", "true", "var", "void", "while"),
}
_RELATIONS: Final = {
    "<": "_<_",
    "<=": "_<=_",
    ">=": "_>=_",
    ">": "_>_",
    "==": "_==_",
    "!=": "_!=_",
    "in": "@in",
}
_ARITHMETIC: Final = {"+": ("_+_", 1), "-": ("_-_", 1), "*": ("_*_", 2), "/": ("_/_", 2), "%": ("_%_", 2)}
_CONSTANTS: Final[dict[str, object]] = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class Parsed:
    """The tree of a text, and where operands stand in it: start and end offset by node id."""

    text: str
    root: Node
    spans: dict[int, tuple[int, int]]


def parse(text: str) -> Parsed:
    """The tree of the text, or CelSyntaxError."""
    if len(text) > MAX_CODE_POINTS:
        message = f"expression code point size exceeds limit: size: {len(text)}, limit {MAX_CODE_POINTS}"
        raise CelSyntaxError(message, line=1, column=1, rule="size of an expression")
    return _Parser(text).parse()


class _Parser:
    """Recursive descent, a method a grammar rule."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens(text)
        self._at = 0
        self._next = self._tokens[0]
        self._last_id = 0
        self._depths = dict.fromkeys(("expr", "relation", "calc", "member"), 0)
        self._heights: dict[int, int] = {}
        self._spans: dict[int, tuple[int, int]] = {}

    def parse(self) -> Parsed:
        root = self._expression()
        if self._next.kind is not Kind.END:
            self._unexpected("the end")
        return Parsed(self._text, root, self._spans)

    # --- tokens ---

    def _take(self) -> Token:
        token = self._next
        if token.kind is not Kind.END:
            self._at += 1
            self._next = self._tokens[self._at]
        return token

    def _sees(self, symbol: str) -> bool:
        return self._next.kind is Kind.SYMBOL and self._next.text == symbol

    def _takes(self, symbol: str) -> bool:
        if not self._sees(symbol):
            return False
        self._take()
        return True

    def _expect(self, symbol: str) -> Token:
        if not self._sees(symbol):
            self._unexpected(repr(symbol))
        return self._take()

    def _unexpected(self, wanted: str) -> NoReturn:
        self._fail(self._next.start, f"Syntax error: unexpected {self._next.text!r}, expected {wanted}", "grammar")

    def _fail(self, start: int, message: str, rule: str) -> NoReturn:
        line, column = place(self._text, start)
        raise CelSyntaxError(message, line=line, column=column, rule=rule)

    # --- depth, ids, places ---

    def _enter(self, rule: str) -> None:
        self._depths[rule] += 1
        if self._depths[rule] > MAX_DEPTH:
            self._fail(self._next.start, f"expression recursion limit exceeded: {MAX_DEPTH}", "nesting of expressions")

    def _leave(self, rule: str) -> None:
        self._depths[rule] -= 1

    def _id(self) -> int:
        self._last_id += 1
        if self._last_id > MAX_NODES:
            self._fail(
                0, f"expression has more than {MAX_NODES} parts when macros are expanded", "size of an expression"
            )
        return self._last_id

    def _raised(self, node: Node, *operands: Node, by: int = 1) -> Node:
        """Note how many operators are nested in the node."""
        height = by + max((self._heights.get(each.id, 0) for each in operands), default=0)
        if height > MAX_DEPTH:
            self._fail(node.start, "max recursion depth exceeded", "nesting of expressions")
        self._heights[node.id] = height
        return node

    def _call(self, start: int, function: str, *args: Node) -> Node:
        return self._raised(Call(id=self._id(), start=start, function=function, args=args), *args)

    def _spanned(self, node: Node, start: int) -> Node:
        self._spans[node.id] = (start, self._tokens[self._at - 1].end)
        return node

    # --- grammar ---

    def _expression(self) -> Node:
        self._enter("expr")
        node = self._disjunction()
        if self._sees("?"):
            start = self._take().start
            when_true = self._disjunction()
            self._expect(":")
            node = self._call(start, "_?_:_", node, when_true, self._expression())
        self._leave("expr")
        return node

    def _disjunction(self) -> Node:
        """Conditions joined by || and &&."""
        terms, starts = [self._conjunction()], []
        while self._sees("||"):
            starts.append(self._take().start)
            terms.append(self._conjunction())
        return terms[0] if not starts else self._balanced("_||_", terms, starts)

    def _conjunction(self) -> Node:
        terms, starts = [self._relation()], []
        while self._sees("&&"):
            starts.append(self._take().start)
            terms.append(self._relation())
        return terms[0] if not starts else self._balanced("_&&_", terms, starts)

    def _balanced(self, function: str, terms: list[Node], starts: list[int]) -> Node:
        """A tree of equal depth on both sides, as cel-go's balancing logic manager makes it."""
        middle = len(starts) // 2
        sides = [(terms[: middle + 1], starts[:middle]), (terms[middle + 1 :], starts[middle + 1 :])]
        args = tuple(each[0] if not more else self._balanced(function, each, more) for each, more in sides)
        node = Call(id=self._id(), start=starts[middle], function=function, args=args)
        return self._raised(node, *args, by=0)

    def _relation(self) -> Node:
        self._enter("relation")
        first = self._next.start
        node = self._calc(0)
        while self._next.kind is Kind.SYMBOL and self._next.text in _RELATIONS:
            token = self._take()
            self._enter("relation")
            node = self._call(token.start, _RELATIONS[token.text], node, self._calc(0))
            self._leave("relation")
        self._leave("relation")
        return self._spanned(node, first)

    def _calc(self, above: int) -> Node:
        """Operands joined by operators that bind stronger than `above`."""
        self._enter("calc")
        node = self._unary()
        while self._next.kind is Kind.SYMBOL and self._next.text in _ARITHMETIC:
            function, strength = _ARITHMETIC[self._next.text]
            if strength <= above:
                break
            node = self._call(self._take().start, function, node, self._calc(strength))
        self._leave("calc")
        return node

    def _unary(self) -> Node:
        symbol = self._next.text
        if self._next.kind is not Kind.SYMBOL or symbol not in ("!", "-") or self._is_negative_number():
            return self._member()
        start, count = self._next.start, 0
        while self._takes(symbol):
            count += 1
        operand = self._member()
        if count % 2 == 0:
            return operand
        node = Call(id=self._id(), start=start, function="!_" if symbol == "!" else "-_", args=(operand,))
        return self._raised(node, operand, by=0)

    def _is_negative_number(self) -> bool:
        return self._sees("-") and self._tokens[self._at + 1].kind in (Kind.INT, Kind.FLOAT)

    def _member(self) -> Node:
        self._enter("member")
        first = self._next.start
        node = self._spanned(self._primary(), first)
        while self._sees(".") or self._sees("["):
            node = self._spanned(self._selected(node) if self._sees(".") else self._indexed(node), first)
        self._leave("member")
        return node

    def _selected(self, operand: Node) -> Node:
        start = self._take().start
        optional = self._takes("?")
        name_token = self._next
        name = self._field_name()
        if self._sees("(") and not optional and name_token.kind is Kind.IDENTIFIER:
            return self._called(self._take().start, name, operand)
        if not optional:
            return self._raised(Select(id=self._id(), start=start, operand=operand, field=name), operand)
        field = Literal(id=self._id(), start=name_token.start, value=name)
        return self._raised(Call(id=self._id(), start=start, function="_?._", args=(operand, field)), operand)

    def _indexed(self, operand: Node) -> Node:
        start = self._take().start
        function = "_[?_]" if self._takes("?") else "_[_]"
        index = self._expression()
        self._expect("]")
        return self._call(start, function, operand, index)

    def _field_name(self) -> str:
        if self._next.kind is Kind.ESCAPED_IDENTIFIER:
            return self._take().text[1:-1]
        if self._next.kind is not Kind.IDENTIFIER:
            self._unexpected("a field name")
        return self._take().text

    def _called(self, start: int, function: str, target: Node | None) -> Node:
        """A call whose opening parenthesis, at `start`, has been taken; a macro's call is expanded."""
        args = self._arguments()
        operands = args if target is None else (target, *args)
        try:
            node = expand(Builder(self._id, start), function, target, args)
        except MacroError as error:
            self._fail(error.start, str(error), "macro")
        if node is None:
            node = Call(id=self._id(), start=start, function=function, args=args, target=target)
        return self._raised(node, *operands, by=0 if target is None else 1)

    def _arguments(self) -> tuple[Node, ...]:
        if self._takes(")"):
            return ()
        args = [self._expression()]
        while self._takes(","):
            args.append(self._expression())
        self._expect(")")
        return tuple(args)

    def _primary(self) -> Node:
        token = self._next
        if token.kind is Kind.IDENTIFIER or token.text == ".":
            return self._named()
        if token.kind is not Kind.SYMBOL or token.text in _CONSTANTS or token.text == "-":
            return self._literal()
        if self._takes("("):
            node = self._expression()
            self._expect(")")
            return node
        if token.text == "[":
            return self._list()
        if token.text != "{":
            self._unexpected("an expression")
        return self._map()

    def _named(self) -> Node:
        if self._is_message():
            return self._message()
        start = self._next.start
        dot = "." if self._takes(".") else ""
        if self._next.kind is not Kind.IDENTIFIER:
            self._unexpected("a name")
        token = self._take()
        if token.text in _RESERVED:
            self._fail(start, f"reserved identifier: {token.text}", "reserved identifiers")
        name = dot + token.text
        if self._sees("("):
            return self._called(self._take().start, name, None)
        return Ident(id=self._id(), start=token.start, name=name)

    def _is_message(self) -> bool:
        """Whether dotted names follow that end in {."""
        at = self._at + (self._next.text == ".")
        while self._tokens[at].kind is Kind.IDENTIFIER and self._tokens[at + 1].text == ".":
            at += 2
        return self._tokens[at].kind is Kind.IDENTIFIER and self._tokens[at + 1].text == "{"

    def _message(self) -> Node:
        name = ""
        while not self._sees("{"):
            name += self._take().text
        start = self._take().start
        fields = [self._message_field() for _ in self._items("}")]
        node = StructNode(id=self._id(), start=start, type_name=name, fields=tuple(fields))
        return self._raised(node, *(each.value for each in fields), by=0)

    def _message_field(self) -> Field:
        optional = self._takes("?")
        name = self._field_name()
        start = self._expect(":").start
        return Field(id=self._id(), start=start, name=name, value=self._expression(), optional=optional)

    def _list(self) -> Node:
        start = self._take().start
        elements: list[Node] = []
        optional: set[int] = set()
        for _ in self._items("]"):
            if self._takes("?"):
                optional.add(len(elements))
            elements.append(self._expression())
        node = ListNode(id=self._id(), start=start, elements=tuple(elements), optional=frozenset(optional))
        return self._raised(node, *elements, by=0)

    def _map(self) -> Node:
        start = self._take().start
        entries = [self._entry() for _ in self._items("}")]
        node = MapNode(id=self._id(), start=start, entries=tuple(entries))
        return self._raised(node, *(part for each in entries for part in (each.key, each.value)), by=0)

    def _entry(self) -> Entry:
        optional = self._takes("?")
        key = self._expression()
        start = self._expect(":").start
        return Entry(id=self._id(), start=start, key=key, value=self._expression(), optional=optional)

    def _items(self, end: str) -> Iterator[None]:
        """Once for each item up to the closing bracket, which may follow a comma, even where there is no item."""
        if not self._sees(end) and not self._sees(","):
            yield
            while self._sees(",") and self._tokens[self._at + 1].text != end:
                self._take()
                yield
        self._takes(",")
        self._expect(end)

    def _literal(self) -> Node:
        start = self._next.start
        negative = self._takes("-")
        token = self._next
        try:
            value = _value(token, negative=negative)
        except ValueError as error:
            self._fail(start, str(error), "literals")
        except KeyError:
            self._unexpected("an expression")
        self._take()
        return Literal(id=self._id(), start=start, value=value)


def _value(token: Token, *, negative: bool) -> object:
    match token.kind:
        case Kind.INT:
            return literals.integer(token.text, negative=negative)
        case Kind.FLOAT:
            return literals.double(token.text, negative=negative)
    if negative:
        raise KeyError(token.text)
    match token.kind:
        case Kind.UINT:
            return literals.unsigned(token.text)
        case Kind.STRING:
            return literals.string(token.text)
        case Kind.BYTES:
            return literals.bytes_(token.text)
    return _CONSTANTS[token.text]
