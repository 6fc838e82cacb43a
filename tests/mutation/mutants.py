"""Mutants of a C++ source: small changes, made token by token, that a test or the simulator must notice.

A mutant replaces one piece of the text. Comments, text literals, preprocessor lines and template brackets stay as they
are. The tree is formatted by clang-format, so a comparison has spaces on both sides and a template's bracket has none.
"""

import dataclasses
import re

TOKEN = re.compile(r"""
    (?P<blank>\s+|//[^\n]*|/\*.*?\*/|^\#(?:[^\n\\]|\\.)*)
  | (?P<text>R"\(.*?\)"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+')
  | (?P<number>\d[\w.']*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<sign><<=|>>=|<=>|->|\+\+|--|&&|\|\||<=|>=|==|!=|\+=|-=|\*=|/=|%=|\|=|&=|<<|::|.)
""", re.VERBOSE | re.DOTALL | re.MULTILINE)

SWAPPED_SIGNS = {
    "<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"], "==": ["!="], "!=": ["=="],
    "&&": ["||"], "||": ["&&"], "+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["/"],
    "+=": ["-="], "-=": ["+="], "*=": ["/="], "/=": ["*="], "&=": ["|="], "|=": ["&="],
}
SWAPPED_WORDS = {
    "min": "max", "max": "min", "any_of": "all_of", "all_of": "any_of", "none_of": "any_of",
    "lower_bound": "upper_bound", "upper_bound": "lower_bound", "min_element": "max_element",
    "max_element": "min_element", "front": "back", "back": "front", "true": "false", "false": "true",
    "continue": "break",
}
# A statement that begins with one of these may not be dropped.
DECLARES = {"return", "const", "constexpr", "auto", "static", "using", "if", "else", "for", "while", "do", "switch", "case", "default",
            "template", "struct", "class", "enum", "namespace", "public", "private", "bool", "char", "int", "float",
            "double", "size_t", "uint8_t", "uint32_t", "uint64_t", "int64_t", "typename", "friend", "explicit", "extern", "inline"}


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str
    text: str
    begin: int
    end: int


@dataclasses.dataclass(frozen=True)
class Mutant:
    file: str
    line: int
    rule: str
    function: str  # in whose body it is, as "Class::Name"
    before: str  # the original line
    after: str
    begin: int
    end: int
    put: str

    @property
    def name(self):
        return f"{self.file}: {self.function}: {self.before} => {self.after}"

    def apply(self, text):
        return text[:self.begin] + self.put + text[self.end:]


def tokens(text):
    """Returns everything except blanks, comments and preprocessor lines."""
    return [Token(m.lastgroup, m.group(), m.start(), m.end())
            for m in TOKEN.finditer(text) if m.lastgroup != "blank"]


class Source:
    def __init__(self, file, text):
        self.file, self.text, self.tokens = file, text, tokens(text)
        self.partner = self.partners()

    def partners(self):
        """Returns, for each opening bracket, the index of its closing one."""
        found, open_ones = {}, []
        for i, token in enumerate(self.tokens):
            if token.kind != "sign":
                continue
            if token.text in "([{":
                open_ones.append(i)
            elif token.text in ")]}" and open_ones:
                found[open_ones.pop()] = i
        return found

    def spaced(self, token):
        """Whether the token has spaces around it, as clang-format sets binary operators."""
        return self.text[token.begin - 1] in " \n" and self.text[token.end] in " \n"

    def mutant(self, rule, begin, end, put):
        line = self.text.count("\n", 0, begin) + 1
        first = self.text.rfind("\n", 0, begin) + 1
        last = self.text.find("\n", end)
        before = self.text[first:last]
        after = self.text[first:begin] + put + self.text[end:last]
        return Mutant(self.file, line, rule, self.function_at(begin), " ".join(before.split()), " ".join(after.split()), begin, end, put)

    def function_at(self, place):
        """Returns the name before the parameter list of the last definition at the left margin."""
        heads = re.findall(r"^(?![ \t}/#)]|namespace|using|struct|class|template)[^\n(;={]*?([\w:~]+)\(", self.text[:place],
                           re.MULTILINE)
        return heads[-1] if heads else ""

    def of_signs(self):
        for i, token in enumerate(self.tokens):
            if token.kind != "sign":
                continue
            if token.text in SWAPPED_SIGNS and self.spaced(token):
                for put in SWAPPED_SIGNS[token.text]:
                    yield self.mutant("operator", token.begin, token.end, put)
            elif token.text in ("++", "--"):
                yield self.mutant("operator", token.begin, token.end, "--" if token.text == "++" else "++")
            elif token.text == "!" and not self.spaced(token):
                yield self.mutant("negation", token.begin, token.end, "")

    def of_words(self):
        for i, token in enumerate(self.tokens):
            if token.kind == "word" and token.text in SWAPPED_WORDS:
                yield self.mutant("word", token.begin, token.end, SWAPPED_WORDS[token.text])
            elif token.kind == "number":
                yield from self.of_number(token)

    def of_number(self, token):
        whole = re.fullmatch(r"(\d+)([uUlL]*)", token.text)
        broken = re.fullmatch(r"(\d+\.\d*)(f?)", token.text)
        if whole:
            yield self.mutant("constant", token.begin, token.end, str(int(whole[1]) + 1) + whole[2])
        elif broken:
            yield self.mutant("constant", token.begin, token.end, str(float(broken[1]) + 1) + broken[2])

    def of_conditions(self):
        for i, token in enumerate(self.tokens[:-1]):
            if token.text not in ("if", "while") or self.tokens[i + 1].text != "(":
                continue
            begin, end = self.tokens[i + 1].end, self.tokens[self.partner[i + 1]].begin
            # In `if (T x = f(); x)` the condition comes last.
            semicolon = self.text.rfind(";", begin, end)
            begin = semicolon + 1 if semicolon >= 0 else begin
            condition = self.text[begin:end].strip()
            if " = " in condition:
                continue
            yield self.mutant("condition", begin, end, f"!({condition})")
            yield self.mutant("condition", begin, end, f"false && ({condition})")

    def of_statements(self):
        for i, token in enumerate(self.tokens[:-1]):
            first = self.tokens[i + 1]
            if token.text not in (";", "{", "}", ")", "else") or first.text in DECLARES:
                continue
            if first.kind != "word" and first.text not in ("++", "--", "*", "("):
                continue
            end = self.end_of_statement(i + 1)
            if end is not None and self.does_something(i + 1, end):
                yield self.mutant("statement", first.begin, self.tokens[end].end, ";")

    def end_of_statement(self, i):
        while i < len(self.tokens):
            text = self.tokens[i].text
            if text == ";":
                return i
            if text in ")]}" or text in (":", ",") and self.tokens[i].kind == "sign":
                return None
            i = self.partner.get(i, i) + 1
        return None

    def does_something(self, i, end):
        """Whether it is a call, an assignment, a step or a jump; a declaration has two words side by side."""
        if self.tokens[i].text in ("break", "continue"):
            return True
        depth = 0
        for a, b in zip(self.tokens[i:end], self.tokens[i + 1:end]):
            if depth == 0 and b.kind == "word" and (a.kind == "word" or a.text in (">", "&", "*") and a is not self.tokens[i]):
                return False
            depth += (a.text in "([{") - (b.text in ")]}")
            if a.text == "=":
                break
        return any(t.text in ("(", "=", "++", "--", "+=", "-=", "*=", "/=", "|=", "&=") for t in self.tokens[i:end])

    def of_functions(self):
        """Yields mutants whose function returns at once, with an empty value."""
        for i, token in enumerate(self.tokens):
            if token.text != "{" or i not in self.partner or not self.begins_function(i):
                continue
            first = self.text.rfind("\n\n", 0, token.begin) + 2
            head = re.sub(r"//[^\n]*", "", self.text[first:token.begin])
            void = re.search(r"(^|\n)\s*(static |inline )*void ", head) or re.search(r"::~?(\w+)\(", head) is None and "void " in head
            yield self.mutant("return", token.end, token.end, " return;" if void else " return {};")

    def begins_function(self, i):
        """Whether a body begins here: at the level of a namespace, after a parameter list."""
        around = [o for o, c in self.partner.items() if o < i < c and self.tokens[o].text == "{"]
        if any(not self.is_namespace(o) for o in around):
            return False
        before = self.tokens[i - 1].text
        return before == ")" or before in ("const", "override", "noexcept")

    def is_namespace(self, o):
        return "namespace" in (self.tokens[o - 1].text, self.tokens[o - 2].text) or (
            o > 2 and self.tokens[o - 3].text == "namespace")


def mutants_of(file, text):
    """Returns all mutants of a source, in the order of the text."""
    source = Source(file, text)
    found = [*source.of_signs(), *source.of_words(), *source.of_conditions(), *source.of_statements(),
             *source.of_functions()]
    unique = {(m.begin, m.end, m.put): m for m in found}
    return sorted(unique.values(), key=lambda m: (m.begin, m.end, m.put))
