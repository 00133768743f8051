"""Translation of a kernel in PTX to C.

A thread is a structure of registers and a function that steps it. The function returns where the threads of a warp or
of a block must meet: at a barrier, a shuffle, a vote, a matrix access. The program around it (``run``) lets each thread go
on from there. Every access to global memory is checked against the ranges of the launch, and is counted.

Only what Triton emits for imgops' kernels is known; anything else raises :class:`Unknown`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.ptx.program import PROGRAM

#: What makes a thread wait, as its step function returns it.
BLOCK, WARP = 1, 2
#: The operations of a warp, as the C code numbers them.
SHUFFLES = {"bfly": 1, "up": 2, "down": 3, "idx": 4}
REDUCTIONS = {"add": 10, "min": 11, "max": 12, "and": 13, "or": 14, "xor": 15}
BALLOT, LOAD_MATRIX, STORE_MATRIX, MULTIPLY = 25, 30, 31, 40

COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
COMPARISONS |= {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
#: Comparisons that are true if an operand is NaN, by those whose opposite they are.
UNORDERED = {"equ": "({x} < {y} || {x} > {y})", "neu": "({x} == {y})", "ltu": "({x} >= {y})"}
UNORDERED |= {"leu": "({x} > {y})", "gtu": "({x} <= {y})", "geu": "({x} < {y})"}
ROUNDINGS = {"rni": "nearbyint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
SPECIAL = {
    "%tid.x": "t->tid",
    "%ctaid.x": "block",
    "%nctaid.x": "blocks",
    "%laneid": "(t->tid & 31)",
    **dict.fromkeys(("%tid.y", "%tid.z", "%ctaid.y", "%ctaid.z"), "0"),
}


class Unknown(NotImplementedError):
    """An instruction that has no translation."""


def bits(kind: str) -> int:
    """Return the width of a PTX type."""
    return int(re.sub(r"\D", "", kind)) if kind != "pred" else 8


def unsigned(kind: str) -> str:
    return f"u{bits(kind)}"


def is_real(kind: str) -> bool:
    return kind in ("f16", "bf16", "f32", "f64")


def split(text: str) -> list[str]:
    """Split operands at the commas that are in no brackets."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter in "{[(") - (letter in ")]}")
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return [each.strip() for each in found if each.strip()]


def parts(operand: str) -> list[str]:
    """Return the registers of a vector ``{a, b}``, or the one that is given."""
    return split(operand[1:-1]) if operand.startswith("{") else [operand]


def label(name: str) -> str:
    return "L_" + re.sub(r"\W", "_", name)


class Kernel:
    """The translation of one entry of a PTX module; ``source`` is the C code."""

    def __init__(self, ptx: str, name: str) -> None:
        entry = re.search(rf"\.entry\s+{re.escape(name)}\((.*?)\)(.*?)\n\{{(.*?)\n\}}", ptx, re.S)
        assert entry is not None, name
        self.threads = int(re.findall(r"\.reqntid\s+(\d+)", entry[2])[0])
        body = re.sub(r"//[^\n]*|/\*.*?\*/", "", entry[3], flags=re.S)
        body = re.sub(r"^\s*\.(loc|file|pragma)\b[^\n]*$", "", body, flags=re.M)
        self.registers = re.findall(r"\.reg\s+\.(\w+)\s+%(\w+?)<(\d+)>;", body)
        self.local = re.search(r"\.local\s+\.align\s+\d+\s+\.b8\s+(\w+)\[(\d+)\];", body)
        self.tables = dict(re.findall(r"([\w$]+):\s*\.branchtargets\s*([^;]*);", body))
        for pattern in (r"\.reg\s[^;]*;", r"\.local\s[^;]*;", r"[\w$]+:\s*\.branchtargets[^;]*;"):
            body = re.sub(pattern, "", body)
        constant = r"\.(?:global|const)\s+\.align\s+\d+\s+\.b(\d+)\s+([\w$.]+)\[\d+\]\s*=\s*\{([^}]*)\}"
        self.constants = {name: (int(width), values) for width, name, values in re.findall(constant, ptx)}
        self.meetings = self.sites = 0
        self.lines: list[str] = []
        for kind, text in self._statements(body):
            self.lines.append(f"{label(text)}:;" if kind == "label" else self._statement(text))
        self.source = self._program()

    # -- statements ------------------------------------------------------------------------------------

    def _statements(self, body: str) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for each in re.finditer(r"([\w$]+):(?=\s)|([^;]+);", body):
            if each[1]:
                found.append(("label", each[1]))
                continue
            text = " ".join(each[2].split())
            while True:
                text = text.lstrip("{} ")
                before = re.match(r"([\w$]+): (.*)", text)
                if before is None:
                    break
                found.append(("label", before[1]))
                text = before[2]
            if text and not text.startswith((".param", ".reg")):
                found.append(("statement", text))
        return found

    def _statement(self, text: str) -> str:
        guarded = re.match(r"@(!?)%(p\d+) (.*)", text)
        guard = ""
        if guarded is not None:
            guard, text = f"if ({guarded[1]}{self.place('%' + guarded[2])}) ", guarded[3]
        op, _, rest = text.partition(" ")
        operands, root = split(rest), op.partition(".")[0]
        try:
            if root in _MEETINGS:
                if guard:
                    raise Unknown("a guard")
                return f"count.instructions++; {getattr(self, '_' + _MEETINGS[root])(op, operands)}"
            work = getattr(self, "_" + _FAMILIES[root])
            return f"count.instructions++; {guard}{{ {work(op.split('.'), operands)} }}"
        except (Unknown, KeyError, IndexError) as why:
            raise Unknown(f"{text}: {why!r}") from why

    # -- operands ----------------------------------------------------------------------------------------

    def place(self, operand: str) -> str:
        """Return a register in C."""
        if operand in ("%SP", "%SPL"):
            return f"t->{operand[1:]}"
        found = re.fullmatch(r"%([a-z]+)(\d+)", operand)
        if found is None:
            if re.fullmatch(r"%?te?mp", operand):
                return "t->temp"
            raise Unknown(operand)
        return f"t->{found[1]}[{found[2]}]"

    def raw(self, operand: str) -> str:
        """Return the bits of an operand."""
        if operand == "%ntid.x":
            return str(self.threads)
        if operand in SPECIAL:
            return SPECIAL[operand]
        if operand.startswith("%") or operand in ("tmp", "temp"):
            return self.place(operand)
        if re.fullmatch(r"0[fF][0-9A-Fa-f]{8}", operand):
            return f"0x{operand[2:]}u"
        if re.fullmatch(r"0[dD][0-9A-Fa-f]{16}", operand):
            return f"0x{operand[2:]}ull"
        if re.fullmatch(r"-?\d+U?", operand):
            return f"((u64)({operand.rstrip('U')}ll))"
        if re.fullmatch(r"0x[0-9a-fA-F]+U?", operand):
            return f"((u64){operand.rstrip('U')}ull)"
        if operand == "global_smem":
            return "((u64)0)"
        if operand in self.constants:
            return f"((u64)(uintptr_t){self._name(operand)})"
        if self.local is not None and operand == self.local[1]:
            return "((u64)0)"
        raise Unknown(operand)

    def value(self, operand: str, kind: str) -> str:
        """Return an operand as a number of a type."""
        raw = self.raw(operand)
        if is_real(kind):
            return f"as_{kind}({raw})"
        return raw if kind == "pred" else f"(({kind.replace('b', 'u')})({raw}))"

    def put(self, operand: str, expression: str, kind: str) -> str:
        """Return the assignment of a number of a type to a register."""
        if is_real(kind):
            return f"{self.place(operand)} = of_{kind}({expression});"
        if kind == "pred":
            return f"{self.place(operand)} = ({expression}) ? 1 : 0;"
        return f"{self.place(operand)} = ({kind.replace('b', 'u')})({expression});"

    def address(self, operand: str) -> str:
        found = re.fullmatch(r"\[\s*(.+?)\s*(?:\+\s*(-?\w+))?\s*\]", operand)
        if found is None:
            raise Unknown(operand)
        return f"(({self.raw(found[1])}) + ({found[2] or 0}))"

    # -- moves and memory -----------------------------------------------------------------------------------

    def _move(self, op: list[str], a: list[str]) -> str:
        kind = op[-1]
        if a[1].startswith("{"):
            inner = parts(a[1])
            width = bits(kind) // len(inner)
            joined = " | ".join(
                f"((u64)(u{width})({self.raw(x)}) << {width * i})" for i, x in enumerate(inner)
            )
            return self.put(a[0], joined, unsigned(kind))
        if a[0].startswith("{"):
            inner = parts(a[0])
            width = bits(kind) // len(inner)
            each = [
                f"{self.place(x)} = (u{width})(q >> {width * i});" for i, x in enumerate(inner) if x != "_"
            ]
            return f"u64 q = (u64)({self.raw(a[1])}); {' '.join(each)}"
        return self.put(a[0], self.raw(a[1]), "pred" if kind == "pred" else unsigned(kind))

    def _convert_address(self, op: list[str], a: list[str]) -> str:
        base = "(u64)(uintptr_t)t->local" if "local" in op and self.local is not None else "0"
        return self.put(a[0], f"{self.raw(a[1])} {'-' if 'to' in op else '+'} {base}", "u64")

    def _space(self, op: list[str]) -> str:
        found = [s for s in ("param", "global", "shared", "local", "const") if s in op or f"{s}::cta" in op]
        return found[0] if found else "global"

    def _load(self, op: list[str], a: list[str]) -> str:
        space, kind = self._space(op), op[-1]
        if space == "param" and "retval" in a[1]:  # what a call would have returned
            return ";"
        if space == "param":
            (number,) = re.findall(r"param_(\d+)", a[1])
            return self.put(a[0], f"*({unsigned(kind)}*)(uintptr_t)(params + 8 * {number})", unsigned(kind))
        into, size = parts(a[0]), bits(kind) // 8
        start = self._checked(space, a[1], size * len(into), "READ")
        signed = kind.replace("b", "u")
        each = [f"{signed} q{i} = *({signed}*)(at + {i * size});" for i in range(len(into))]
        each += [self.put(x, f"q{i}", signed) for i, x in enumerate(into) if x != "_"]
        return f"{start} {' '.join(each)}"

    def _store(self, op: list[str], a: list[str]) -> str:
        if "param" in op:  # an argument of a call, which is a fault
            return ";"
        kind, values = op[-1], parts(a[1])
        size = bits(kind) // 8
        start = self._checked(self._space(op), a[0], size * len(values), "WRITE")
        each = [
            f"*(u{8 * size}*)(at + {i * size}) = (u{8 * size})({self.raw(x)});" for i, x in enumerate(values)
        ]
        return f"{start} {' '.join(each)}"

    def _checked(self, space: str, operand: str, size: int, way: str) -> str:
        """Return the declaration of a pointer ``at`` to memory that may be accessed."""
        where = self.address(operand)
        if space == "shared":
            return f"u8* at = shared_at(shared, (u32){where}, {size}); if (!at) return 0;"
        if space == "local":
            assert self.local is not None
            return f"u8* at = local_at(t->local, (u32){where}, {size}, {self.local[2]}); if (!at) return 0;"
        if space != "global":
            return f"u8* at = (u8*)(uintptr_t){where};"
        if re.fullmatch(r"\[\s*%\w+.*", operand) is None:
            return f"u8* at = (u8*)(uintptr_t){where};"
        self.sites += 1
        return f"u8* at = global_at({where}, {size}, {way}, {self.sites}); if (!at) return 0;"

    def _atomic(self, op: list[str], a: list[str]) -> str:
        returns = op[0] == "atom"
        target, kind = a[int(returns)], op[-1]
        value = self.value(a[int(returns) + 1], kind)
        start = self._checked(self._space(op), target, bits(kind) // 8, "WRITE")
        word = unsigned(kind)
        old = f"{start} {word} old = *({word}*)at;"
        known = f"as_{kind}(old)" if is_real(kind) else f"({kind.replace('b', 'u')})old"
        new = {
            "add": f"{known} + {value}",
            "min": f"({known} < {value} ? {known} : {value})",
            "max": f"({known} > {value} ? {known} : {value})",
            "or": f"{known} | {value}",
            "and": f"{known} & {value}",
            "exch": value,
        }
        (operation,) = [name for name in new if name in op]
        result = f"of_{kind}({new[operation]})" if is_real(kind) else f"({word})({new[operation]})"
        return f"{old} *({word}*)at = {result};" + (f" {self.place(a[0])} = old;" if returns else "")

    # -- arithmetic --------------------------------------------------------------------------------------------

    def _arithmetic(self, op: list[str], a: list[str]) -> str:
        if op[-1].endswith("f16x2"):
            return self._pairs(op, a)
        return self._reals(op, a) if is_real(op[-1]) else self._integers(op, a)

    def _pairs(self, op: list[str], a: list[str]) -> str:
        """Return an operation of the two numbers of 16 bits that each register holds."""
        kind, halves = op[-1].removesuffix("x2"), []
        known, made = (f"as_{kind}", f"of_{kind}") if is_real(kind) else (f"({kind})", "(u16)")
        formula = self._formula if is_real(kind) else self._whole_formula
        for shift in (0, 16):
            x = [f"{known}((u16)({self.raw(v)} >> {shift}))" for v in a[1:]]
            halves.append(f"(u32){made}({formula(op, x, kind)}) << {shift}")
        return self.put(a[0], " | ".join(halves), "u32")

    def _reals(self, op: list[str], a: list[str]) -> str:
        kind, flushes = op[-1], "ftz" in op
        x = [f"flushed({self.value(v, kind)})" if flushes else self.value(v, kind) for v in a[1:]]
        made = self._formula(op, x, kind)
        near = "count.approximate++; " if "approx" in op or "full" in op else ""
        return near + self.put(a[0], f"flushed({made})" if flushes else made, kind)

    def _formula(self, op: list[str], x: list[str], kind: str) -> str:
        """Return an operation of numbers in C."""
        if "sat" in op:
            raise Unknown(kind)
        s = "" if kind == "f64" else "f"
        forms = {
            "add": "{0} + {1}",
            "sub": "{0} - {1}",
            "mul": "{0} * {1}",
            "div": "{0} / {1}",
            "min": "fmin{s}({0}, {1})",
            "max": "fmax{s}({0}, {1})",
            "fma": "fma{s}({0}, {1}, {2})",
            "mad": "fma{s}({0}, {1}, {2})",
            "neg": "-({0})",
            "abs": "fabs{s}({0})",
            "copysign": "copysign{s}({1}, {0})",
            "ex2": "exp2{s}({0})",
            "lg2": "log2{s}({0})",
            "sin": "sin{s}({0})",
            "cos": "cos{s}({0})",
            "sqrt": "sqrt{s}({0})",
            "rcp": "1 / {0}",
            "rsqrt": "1 / sqrt{s}({0})",
        }
        made = forms[op[0]].format(*x, s=s)
        if "NaN" in op:
            made = f"({x[0]} != {x[0]} ? {x[0]} : {x[1]} != {x[1]} ? {x[1]} : {made})"
        return made

    def _integers(self, op: list[str], a: list[str]) -> str:
        root, kind = op[0], op[-1]
        if kind == "pred":
            sign = {"and": "&", "or": "|", "xor": "^"}
            made = (
                f"!{self.raw(a[1])}" if root == "not" else f"{self.raw(a[1])} {sign[root]} {self.raw(a[2])}"
            )
            return self.put(a[0], made, "pred")
        if kind.endswith("x2"):
            return self._pairs(op, a)
        x = [self.value(v, kind) for v in a[1:]]
        n = bits(kind)
        if root in ("shl", "shr"):
            by = f"(u32)({self.raw(a[2])})"
            if root == "shl":
                return self.put(a[0], f"({by} >= {n} ? 0 : (u{n}){x[0]} << {by})", f"u{n}")
            most = f"{x[0]} >> {n - 1}" if kind[0] == "s" else "0"
            return self.put(a[0], f"({by} >= {n} ? {most} : {x[0]} >> {by})", kind)
        if root in ("mul", "mad", "madc"):
            return self._product(op, a, x)
        if root in ("add", "sub", "addc", "subc") and ("cc" in op or root.endswith("c")):
            return self._with_carry(op, a, x)
        return self.put(a[0], self._whole_formula(op, x, kind), "u32" if root in ("popc", "clz") else kind)

    def _whole_formula(self, op: list[str], x: Sequence[str], kind: str) -> str:
        """Return an operation of whole numbers in C."""
        root, n = op[0], bits(kind)
        if "sat" in op:
            raise Unknown(kind)
        forms = {
            "add": "(u64){0} + (u64){1}",
            "sub": "(u64){0} - (u64){1}",
            "and": "{0} & {1}",
            "or": "{0} | {1}",
            "xor": "{0} ^ {1}",
            "not": "~{0}",
            "neg": "-(u64){0}",
            "abs": "({0} < 0 ? -{0} : {0})",
            "min": "({0} < {1} ? {0} : {1})",
            "max": "({0} > {1} ? {0} : {1})",
            "div": "({1} == 0 ? -1 : {0} / {1})",
            "rem": "({1} == 0 ? -1 : {0} % {1})",
            "popc": f"__builtin_popcount{'ll' * (n == 64)}({{0}})",
            "clz": f"({{0}} ? __builtin_clz{'ll' * (n == 64)}({{0}}) : {n})",
        }
        made = forms[root].format(*x)
        return f"({made} < 0 ? 0 : {made})" if "relu" in op else made

    def _product(self, op: list[str], a: list[str], x: Sequence[str]) -> str:
        kind, n = op[-1], bits(op[-1])
        whole = f"{kind[0]}{2 * n}" if n < 64 else ("__int128" if kind[0] == "s" else "unsigned __int128")
        product = f"(({whole})({x[0]}) * ({whole})({x[1]}))"
        if "wide" in op:
            more = f" + ({whole}){self.value(a[3], f'{kind[0]}{2 * n}')}" if op[0] == "mad" else ""
            return self.put(a[0], f"{product}{more}", f"{kind[0]}{2 * n}")
        made = f"(u{n})({product} >> {n})" if "hi" in op else f"(u{n})((u64){x[0]} * (u64){x[1]})"
        if op[0] == "mul":
            return self.put(a[0], made, f"u{n}")
        carry = "t->carry" if op[0] == "madc" else "0"
        if n == 64:
            return self.put(a[0], f"{made} + (u64){x[2]}", "u64")
        keep = " t->carry = q >> 32;" if "cc" in op else ""
        return f"u64 q = (u64){made} + (u64)(u32){x[2]} + {carry};{keep} {self.place(a[0])} = (u32)q;"

    def _with_carry(self, op: list[str], a: list[str], x: Sequence[str]) -> str:
        n, sign = bits(op[-1]), "+" if op[0].startswith("add") else "-"
        carry = "t->carry" if op[0].endswith("c") else "0"
        keep = f" t->carry = (q >> {n}) & 1;" if "cc" in op else ""
        wide = "unsigned __int128"
        made = f"({wide})(u{n}){x[0]} {sign} ({wide})(u{n}){x[1]} {sign} {carry}"
        return f"{wide} q = {made};{keep} {self.place(a[0])} = (u{n})q;"

    def _compare(self, op: list[str], a: list[str]) -> str:
        kind, how = op[-1], op[1]
        x, y = (self.value(v, kind) for v in a[1:3])
        if how in ("num", "nan"):
            known = f"({x} == {x} && {y} == {y})"
            return self.put(a[0], known if how == "num" else f"!{known}", "pred")
        if how in UNORDERED:
            return self.put(a[0], f"!{UNORDERED[how].format(x=x, y=y)}", "pred")
        if is_real(kind) and how == "ne":
            return self.put(a[0], f"({x} < {y} || {x} > {y})", "pred")
        if len(op) > 3 and op[2] in ("and", "or", "xor"):
            raise Unknown("a comparison with a predicate")
        return self.put(a[0], f"{x} {COMPARISONS[how]} {y}", "pred")

    def _select(self, op: list[str], a: list[str]) -> str:
        kind = unsigned(op[-1])
        return f"{self.place(a[0])} = {self.raw(a[3])} ? ({kind})({self.raw(a[1])}) : ({kind})({self.raw(a[2])});"

    def _bits(self, op: list[str], a: list[str]) -> str:
        raw = [self.raw(v) for v in a[1:]]
        if op[0] == "prmt":
            if op[2:] == ["f4e"]:  # four bytes of the pair, from one of the first four on
                pair = f"((((u64)(u32)({raw[1]})) << 32) | (u32)({raw[0]}))"
                return self.put(a[0], f"{pair} >> (8 * ((u32)({raw[2]}) & 3))", "u32")
            if op[2:]:
                raise Unknown("a mode of prmt")
            return self.put(a[0], f"permuted((u32)({raw[0]}), (u32)({raw[1]}), (u32)({raw[2]}))", "u32")
        if op[0] == "lop3":
            return self.put(
                a[0], f"looked_up((u32)({raw[0]}), (u32)({raw[1]}), (u32)({raw[2]}), {raw[3]})", "u32"
            )
        if op[0] == "shf":
            pair = f"((((u64)(u32)({raw[1]})) << 32) | (u32)({raw[0]}))"
            if op[2] != "wrap":
                raise Unknown("a clamped shift")
            by = f"((u32)({raw[2]}) & 31)"
            return self.put(a[0], f"({pair} << {by}) >> 32" if op[1] == "l" else f"{pair} >> {by}", "u32")
        kind, n = op[-1], bits(op[-1])  # bfe
        start, length = f"(u32)({raw[1]})", f"(u32)({raw[2]})"
        x = self.value(a[1], kind)
        if kind[0] == "s":
            cut = f"(s{n})((u{n}){x} << ({n} - {start} - {length})) >> ({n} - {length})"
            return self.put(a[0], f"({length} ? {cut} : 0)", kind)
        return self.put(a[0], f"({x} >> {start}) & ((1ull << {length}) - 1)", kind)

    def _convert(self, op: list[str], a: list[str]) -> str:
        to, source, flushes = op[-2], op[-1], "ftz" in op
        rounding = next((r for r in (*ROUNDINGS, "rn", "rz", "rm", "rp") if r in op), "")
        if "sat" in op:
            raise Unknown("saturation")
        if "f16x2" in op or "bf16x2" in op:
            of = "of_bf16" if "bf16x2" in op else "of_f16"
            high, low = (f"(u32){of}({self.value(v, 'f32')})" for v in a[1:3])
            return self.put(a[0], f"({high} << 16) | {low}", "u32")
        value = self.value(a[1], source)
        value = f"flushed({value})" if flushes and source == "f32" else value
        if rounding in ROUNDINGS:
            value = f"{ROUNDINGS[rounding]}{'' if source == 'f64' else 'f'}({value})"
        elif rounding not in ("", "rn") or (is_real(source) and not is_real(to)):
            raise Unknown(rounding)
        if is_real(source) and not is_real(to):
            return self.put(a[0], f"whole_{to}((double)({value}))", to)
        if is_real(to):
            cast = {"f64": "double", "f32": "float", "f16": "float", "bf16": "float"}[to]
            made = f"({cast})({value})"
            return self.put(a[0], f"flushed({made})" if flushes and to == "f32" else made, to)
        return self.put(a[0], value, to)

    # -- control ----------------------------------------------------------------------------------------------------

    def _branch(self, op: list[str], a: list[str]) -> str:
        return f"goto {label(a[0])};"

    def _leave(self, op: list[str], a: list[str]) -> str:
        return "t->pc = -1; return 0;"

    def _branch_by_table(self, op: list[str], a: list[str]) -> str:
        cases = enumerate(self.tables[a[1]].split(","))
        each = " ".join(f"case {i}: goto {label(name.strip())};" for i, name in cases)
        return f"switch ((u32)({self.raw(a[0])})) {{ {each} }}"

    def _call(self, op: list[str], a: list[str]) -> str:
        return "fault = CALLED; return 0;"

    # -- meetings ---------------------------------------------------------------------------------------------------------

    def _meet(self, before: str, returned: int, after: str = "") -> str:
        self.meetings += 1
        at = self.meetings
        return f"{before} t->pc = {at}; return {returned}; case {at}:; {after}"

    def _barrier(self, op: str, a: list[str]) -> str:
        return self._meet("", BLOCK)

    def _shuffle(self, op: str, a: list[str]) -> str:
        into = a[0].split("|")
        given = " ".join(f"t->in[{i}] = (u32)({self.raw(v)});" for i, v in enumerate(a[1:4]))
        after = f"{self.place(into[0])} = t->out[0];"
        if len(into) > 1:
            after += f" {self.place(into[1])} = t->out[1];"
        return self._meet(f"{given} t->op = {SHUFFLES[op.split('.')[2]]};", WARP, after)

    def _reduce(self, op: str, a: list[str]) -> str:
        how, kind = op.split(".")[2], op.split(".")[-1]
        number = REDUCTIONS[how] + (10 if how in ("min", "max") and kind[0] == "u" else 0)
        given = f"t->in[0] = (u32)({self.raw(a[1])}); t->op = {number};"
        return self._meet(given, WARP, f"{self.place(a[0])} = t->out[0];")

    def _vote(self, op: str, a: list[str]) -> str:
        if ".ballot" not in op:
            raise Unknown(op)
        given = f"t->in[0] = {self.raw(a[1])}; t->op = {BALLOT};"
        return self._meet(given, WARP, f"{self.place(a[0])} = t->out[0];")

    def _matrix(self, op: str, a: list[str]) -> str:
        if "trans" in op:
            raise Unknown(op)
        loads = op.startswith("ld")
        rows = parts(a[0] if loads else a[1])
        given = f"t->in[0] = (u32){self.address(a[1] if loads else a[0])}; t->in[1] = {len(rows)};"
        if loads:
            after = " ".join(f"{self.place(x)} = t->out[{i}];" for i, x in enumerate(rows))
            return self._meet(f"{given} t->op = {LOAD_MATRIX};", WARP, after)
        given += " ".join(f" t->out[{i}] = (u32)({self.raw(x)});" for i, x in enumerate(rows))
        return self._meet(f"{given} t->op = {STORE_MATRIX};", WARP)

    def _multiply(self, op: str, a: list[str]) -> str:
        """Multiply matrices of bytes: ``(16, 32)`` by ``(32, 8)``, added to integers."""
        if ".m16n8k32.row.col" not in op or not op.endswith(".s32.s8.s8.s32"):
            raise Unknown(op)
        operands = [x for matrix in a[1:] for x in parts(matrix)]
        given = " ".join(f"t->in[{i}] = (u32)({self.raw(x)});" for i, x in enumerate(operands))
        after = " ".join(f"{self.place(x)} = t->out[{i}];" for i, x in enumerate(parts(a[0])))
        return self._meet(f"{given} t->op = {MULTIPLY};", WARP, after)

    # -- the program ----------------------------------------------------------------------------------------------------------

    def _name(self, constant: str) -> str:
        return "constant_" + re.sub(r"\W", "_", constant)

    def _program(self) -> str:
        registers = " ".join(
            f"{'u8' if kind == 'pred' else unsigned(kind)} {name}[{count}];"
            for kind, name, count in self.registers
        )
        local = f"u8 local[{self.local[2]}] __attribute__((aligned(16)));" if self.local is not None else ""
        constants = "\n".join(
            f"static const u{width} {self._name(name)}[] __attribute__((aligned(16))) = {{{values}}};"
            for name, (width, values) in self.constants.items()
        )
        among = " ".join(
            f"if (at >= (u64)(uintptr_t){name} && at + size <= (u64)(uintptr_t){name} + sizeof {name}) return (u8*)1;"
            for name in map(self._name, self.constants)
        )
        return PROGRAM.format(
            constants=constants,
            among_constants=among,
            thread=f"{local} {registers}",
            threads=self.threads,
            sites=self.sites + 1,
            step="\n".join(self.lines),
        )


_FAMILIES = {
    "mov": "move",
    "cvta": "convert_address",
    "ld": "load",
    "ldu": "load",
    "st": "store",
    "atom": "atomic",
    "red": "atomic",
    "setp": "compare",
    "selp": "select",
    "cvt": "convert",
    "bra": "branch",
    "ret": "leave",
    "exit": "leave",
    "brx": "branch_by_table",
    "call": "call",
    **dict.fromkeys(("prmt", "lop3", "shf", "bfe"), "bits"),
    **dict.fromkeys(("add", "sub", "mul", "mad", "madc", "addc", "subc", "div", "rem"), "arithmetic"),
    **dict.fromkeys(("and", "or", "xor", "not", "shl", "shr", "neg", "abs", "min", "max"), "arithmetic"),
    **dict.fromkeys(("fma", "copysign", "ex2", "lg2", "sin", "cos", "sqrt", "rcp", "rsqrt"), "arithmetic"),
    **dict.fromkeys(("popc", "clz"), "arithmetic"),
}
_MEETINGS = {
    "bar": "barrier",
    "barrier": "barrier",
    "shfl": "shuffle",
    "redux": "reduce",
    "vote": "vote",
    "ldmatrix": "matrix",
    "stmatrix": "matrix",
    "mma": "multiply",
}
