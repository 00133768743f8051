"""Translation of a kernel in PTX to C.

A thread is a structure of registers and a function that steps it. The function returns where the threads of a warp or
of a block must meet: at a barrier, a shuffle, a vote, a matrix access. ``machine.c`` lets each thread go on from there.
Every access to global memory is checked against the ranges of the launch, and is counted.

Only what Triton emits for imgops' kernels is known; anything else raises :class:`Unknown`.
"""

from __future__ import annotations

import re

BITWISE = {"and": "{a} & {b}", "or": "{a} | {b}", "xor": "{a} ^ {b}"}
#: What integers become, by the instruction's name without its type. ``a``, ``b``, ``c`` and ``d`` are its operands as
#: numbers of the type, ``n`` its bits, ``wide`` a type of twice its bits.
INTEGERS = {
    "add": "(u64){a} + (u64){b}",
    "sub": "(u64){a} - (u64){b}",
    "mul.lo": "(u64){a} * (u64){b}",
    "mad.lo": "(u64){a} * (u64){b} + (u64){c}",
    "mul.hi": "({wide}){a} * ({wide}){b} >> {n}",
    "mul.wide": "({wide}){a} * ({wide}){b}",
    "mad.wide": "({wide}){a} * ({wide}){b} + {c}",
    "div": "({b} == 0 ? -1 : {a} / {b})",
    "rem": "({b} == 0 ? -1 : {a} % {b})",
    **BITWISE,
    "not": "~{a}",
    "neg": "-(u64){a}",
    "abs": "({a} < 0 ? -{a} : {a})",
    "min": "({a} < {b} ? {a} : {b})",
    "max": "({a} > {b} ? {a} : {b})",
    "shl": "({b} >= {n} ? 0 : (u64){a} << {b})",
    "shr": "({b} >= {n} ? ({a} < 0 ? -1 : 0) : {a} >> {b})",
    "shf.l.wrap": "(joined({a}, {b}) << ({c} & 31)) >> 32",
    "shf.r.wrap": "joined({a}, {b}) >> ({c} & 31)",
    "prmt": "permuted({a}, {b}, {c})",
    "prmt.f4e": "joined({a}, {b}) >> (8 * ({c} & 3))",
    "lop3": "looked_up({a}, {b}, {c}, {d})",
    "bfe": "({c} ? ({type})((u{n}){a} << ({n} - {b} - {c})) >> ({n} - {c}) : 0)",
    "selp": "({c} ? {a} : {b})",
    "popc": "__builtin_popcountll({a})",
    "clz": "({a} ? __builtin_clzll({a}) - (64 - {n}) : {n})",
    # Sums of several words: the carry is kept by ``.cc``, and used by the names that end with c.
    "add.cc": "carried(t, (u128){a} + {b}, {n})",
    "addc": "{a} + {b} + t->carry",
    "addc.cc": "carried(t, (u128){a} + {b} + t->carry, {n})",
    "sub.cc": "carried(t, (u128){a} - {b}, {n})",
    "subc": "{a} - {b} - t->carry",
    "subc.cc": "carried(t, (u128){a} - {b} - t->carry, {n})",
    "mad.lo.cc": "carried(t, (u128)(u{n})({a} * {b}) + {c}, {n})",
    "madc.lo": "{a} * {b} + {c} + t->carry",
    "madc.lo.cc": "carried(t, (u128)(u{n})({a} * {b}) + {c} + t->carry, {n})",
    "mad.hi": "(({wide}){a} * {b} >> {n}) + {c}",
    "madc.hi": "(({wide}){a} * {b} >> {n}) + {c} + t->carry",
    "madc.hi.cc": "carried(t, (u128)(u{n})(({wide}){a} * {b} >> {n}) + {c} + t->carry, {n})",
}
PREDICATES = {**BITWISE, "not": "!{a}"}
#: What real numbers become; ``f`` is the end of the names of C's functions of single precision.
REALS = {
    **{name: f"{{a}} {sign} {{b}}" for name, sign in zip(("add", "sub", "mul", "div"), "+-*/", strict=True)},
    "rcp": "1 / {a}",
    "neg": "-({a})",
    "fma": "fma{f}({a}, {b}, {c})",
    "mad": "fma{f}({a}, {b}, {c})",
    "min": "fmin{f}({a}, {b})",
    "max": "fmax{f}({a}, {b})",
    "min.NaN": "({a} != {a} ? {a} : {b} != {b} ? {b} : fmin{f}({a}, {b}))",
    "max.NaN": "({a} != {a} ? {a} : {b} != {b} ? {b} : fmax{f}({a}, {b}))",
    "copysign": "copysign{f}({b}, {a})",
    "rsqrt": "1 / sqrt{f}({a})",
    **{name: name + "{f}({a})" for name in ("sin", "cos", "sqrt")},
    **{name: c + "{f}({a})" for name, c in (("ex2", "exp2"), ("lg2", "log2"), ("abs", "fabs"))},
}
COMPARISONS = {
    "eq": "{a} == {b}",
    "lt": "{a} < {b}",
    "le": "{a} <= {b}",
    "gt": "{a} > {b}",
    "ge": "{a} >= {b}",
}
COMPARISONS |= {"lo": "{a} < {b}", "ls": "{a} <= {b}", "hi": "{a} > {b}", "hs": "{a} >= {b}"}
COMPARISONS |= {"ne": "({a} < {b} || {a} > {b})", "num": "({a} == {a} && {b} == {b})"}
#: Comparisons that are true if an operand is NaN, by those whose opposite they are.
UNORDERED = {"equ": "ne", "neu": "eq", "ltu": "ge", "leu": "gt", "gtu": "le", "geu": "lt", "nan": "num"}
COMPARISONS |= {name: f"!({COMPARISONS[opposite]})" for name, opposite in UNORDERED.items()}
#: What an atomic access writes.
ATOMIC = {name: INTEGERS[name] for name in ("min", "max", "or", "and")} | {"add": "{a} + {b}", "exch": "{b}"}
#: Parts of an instruction's name that do not choose a form.
NEUTRAL = {"rn", "ftz", "approx", "full"}
#: The operations of a warp, by the numbers that ``machine.c`` has for them.
MEETINGS = {
    **{f"shfl.sync.{how}.b32": 1 + i for i, how in enumerate(("bfly", "up", "down", "idx"))},
    **{f"redux.sync.{how}.s32": 10 + i for i, how in enumerate(("add", "min", "max"))},
    **{f"redux.sync.{how}.u32": i for how, i in (("add", 10), ("min", 13), ("max", 14))},
    **{f"redux.sync.{how}.b32": 15 + i for i, how in enumerate(("and", "or", "xor"))},
    "vote.sync.ballot.b32": 18,
    **{f"ldmatrix.sync.aligned.m8n8.x{n}.shared.b16": 20 + n for n in (1, 2, 4)},
    **{f"stmatrix.sync.aligned.m8n8.x{n}.shared.b16": 30 + n for n in (1, 2, 4)},
    "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32": 40,
}
ROUNDINGS = {"rni": "nearbyint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
SPECIAL = {"%tid.x": "t->tid", "%laneid": "(t->tid & 31)", "%ctaid.x": "block", "%nctaid.x": "blocks"}
SPECIAL |= {"%ntid.x": "THREADS", "global_smem": "0", "%SP": "t->SP", "%SPL": "t->SPL"}
SPECIAL |= dict.fromkeys(("tmp", "temp", "%tmp", "%temp"), "t->temp")
SPECIAL |= dict.fromkeys(("%tid.y", "%tid.z", "%ctaid.y", "%ctaid.z"), "0")
REAL = ("f16", "bf16", "f32", "f64")


class Unknown(NotImplementedError):
    """An instruction that has no translation."""


def bits(kind: str) -> int:
    """Return the width of a PTX type."""
    return int(re.sub(r"\D", "", kind)) if kind != "pred" else 8


def whole(kind: str) -> str:
    """Return the C type of the integers of a PTX type, such as b32."""
    return kind if kind[0] == "s" else f"u{bits(kind)}"


def split(text: str) -> list[str]:
    """Split operands at the commas that are in no brackets."""
    return [each.strip() for each in re.split(r",(?![^{\[(]*[}\])])", text) if each.strip()]


def parts(operand: str) -> list[str]:
    """Return the registers of a vector ``{a, b}`` or of a pair ``a|b``, or the one that is given."""
    return split(operand[1:-1]) if operand.startswith("{") else operand.split("|")


def label(name: str) -> str:
    return "L_" + re.sub(r"\W", "_", name)


class Kernel:
    """The translation of one entry of a PTX module; ``source`` is the C code."""

    def __init__(self, ptx: str, name: str) -> None:
        entry = re.search(rf"\.entry\s+{re.escape(name)}\((.*?)\)(.*?)\n\{{(.*?)\n\}}", ptx, re.S)
        assert entry is not None, name
        threads = re.findall(r"\.reqntid\s+(\d+)", entry[2])[0]
        body = re.sub(r"//[^\n]*|/\*.*?\*/|^\s*\.(loc|file|pragma)\b[^\n]*$", "", entry[3], flags=re.S | re.M)
        registers = re.findall(r"\.reg\s+\.(\w+)\s+%(\w+?)<(\d+)>;", body)
        self.local = re.search(r"\.local\s+\.align\s+\d+\s+\.b8\s+(\w+)\[(\d+)\];", body)
        self.tables = dict(re.findall(r"([\w$]+):\s*\.branchtargets\s*([^;]*);", body))
        body = re.sub(r"\.reg\s[^;]*;|\.local\s[^;]*;|[\w$]+:\s*\.branchtargets[^;]*;", "", body)
        constant = r"\.(?:global|const)\s+\.align\s+\d+\s+\.b(\d+)\s+([\w$.]+)\[\d+\]\s*=\s*\{([^}]*)\}"
        self.constants = {name: (width, values) for width, name, values in re.findall(constant, ptx)}
        self.meetings = self.sites = 0
        statements = (" ".join(each.split()).lstrip("{} ") for each in re.split(r";|(?<=[\w$]:)(?=\s)", body))
        lines = [self._line(each) for each in statements]
        members = [f"{whole(kind)} {name}[{count}];" for kind, name, count in registers]
        if self.local is not None:
            members.append(f"u8 local[{self.local[2]}] __attribute__((aligned(16)));")
        named = {label(name): each for name, each in self.constants.items()}
        aligned = "__attribute__((aligned(16)))"
        among = (f"|| (at >= (u64){c} && at + size <= (u64){c} + sizeof {c})" for c in named)
        self.source = "\n".join(
            [
                f"#define THREADS {threads}\n#define SITES {self.sites + 1}",
                f"#define REGISTERS {' '.join(members)}",
                '#include "machine.c"',
                *(f"static const u{n} {c}[] {aligned} = {{{values}}};" for c, (n, values) in named.items()),
                f"static int is_constant(u64 at, u32 size) {{ return 0 {' '.join(among)}; }}",
                "static int step(Thread* t, u32 block, u32 blocks, u64 params, u8* shared) {",
                *("switch (t->pc) { case 0:;", *filter(None, lines), "} return ENDED; }"),
            ]
        )

    # -- statements ------------------------------------------------------------------------------------

    def _line(self, text: str) -> str:
        """Return a label or an instruction in C."""
        if text.endswith(":"):
            return f"{label(text[:-1])}:;"
        if not text or text.startswith((".param", ".reg")):
            return ""
        guarded = re.match(r"@(!?)(%p\d+) ", text)
        guard = f"if ({guarded[1]}{self.raw(guarded[2])}) " if guarded is not None else ""
        op, _, rest = text[guarded.end() if guarded is not None else 0 :].partition(" ")
        try:
            op = op.replace("::cta", "").replace("prmt.b32.f4e", "prmt.f4e.b32")
            work = self._instruction(op, split(rest))
            if "case " in work and guard and not op.startswith("brx"):
                raise Unknown("a guard")
        except (Unknown, KeyError, IndexError, ValueError) as why:
            raise Unknown(f"{text}: {why!r}") from why
        return f"count.instructions++; {guard}{{ {work} }}" if guard else f"count.instructions++; {work}"

    def _instruction(self, op: str, a: list[str]) -> str:
        root, *how = op.split(".")
        if op in MEETINGS or root in ("bar", "barrier"):
            return self._meet(op, a)
        if root in ("ld", "ldu", "st", "atom", "red"):
            return "{ " + self._access(root, how, a) + " }"
        if root == "mov" and "{" in a[0] + a[1]:
            return "{ " + self._vector(how[-1], a) + " }"
        if root == "cvt":
            return self._convert(how, a)
        if root == "cvta":
            base = "(u64)t->local" if "local" in how and self.local is not None else "0"
            return self.put(a[0], f"{self.raw(a[1])} {'-' if 'to' in how else '+'} {base}", "u64")
        if root == "setp" and len(a) == 3:
            return self.put(a[0], self._filled(COMPARISONS[how[0]], a[1:], how[-1]), "pred")
        if root == "bra":
            return f"goto {label(a[0])};"
        if root in ("ret", "exit"):
            return "return ENDED;"
        if root == "call":  # its arguments and its result are no accesses
            return 'fault = "a call of a function"; return 0;'
        if root == "brx":
            each = enumerate(self.tables[a[1]].split(","))
            cases = " ".join(f"case {i}: goto {label(name.strip())};" for i, name in each)
            return f"switch ((u32){self.raw(a[0])}) {{ {cases} }}"
        return self._compute(root, how, a)

    # -- operands ----------------------------------------------------------------------------------------

    def raw(self, operand: str) -> str:
        """Return the bits of an operand, or the address in brackets."""
        if operand.startswith("["):
            base, _, offset = operand[1:-1].partition("+")
            return f"({self.raw(base.strip())} + ({offset.strip() or 0}))"
        if operand in SPECIAL:
            return SPECIAL[operand]
        if register := re.fullmatch(r"%([a-z]+)(\d+)", operand):
            return f"t->{register[1]}[{register[2]}]"
        if real := re.fullmatch(r"0[fFdD]([0-9A-Fa-f]{8,16})", operand):
            return f"0x{real[1]}ull"
        if re.fullmatch(r"-?\d+U?|0x[0-9a-fA-F]+U?", operand):
            return f"((u64){operand.rstrip('U')}{'ull' if operand.startswith('0x') else 'll'})"
        if operand in self.constants:
            return f"((u64){label(operand)})"
        if self.local is not None and operand == self.local[1]:
            return "((u64)0)"
        raise Unknown(operand)

    def value(self, operand: str, kind: str) -> str:
        """Return an operand as a number of a type."""
        raw = self.raw(operand)
        return f"as_{kind}({raw})" if kind in REAL else raw if kind == "pred" else f"(({whole(kind)})({raw}))"

    def put(self, operand: str, expression: str, kind: str) -> str:
        """Return the assignment of a number of a type to a register."""
        if operand == "_":
            return ""
        if kind == "pred":
            return f"{self.raw(operand)} = ({expression}) ? 1 : 0;"
        return f"{self.raw(operand)} = {f'of_{kind}' if kind in REAL else f'({whole(kind)})'}({expression});"

    # -- moves and memory -----------------------------------------------------------------------------------

    def _vector(self, kind: str, a: list[str]) -> str:
        """Return the move of several registers to one, or of one to several."""
        into, given = parts(a[0]), parts(a[1])
        n = bits(kind) // max(len(into), len(given))
        joined = " | ".join(f"(u64)(u{n}){self.raw(x)} << {n * i}" for i, x in enumerate(given))
        if len(into) == 1:
            return self.put(a[0], joined, kind)
        each = (self.put(x, f"q >> {n * i}", f"u{n}") for i, x in enumerate(into))
        return f"u64 q = {self.raw(a[1])}; {' '.join(each)}"

    def _access(self, root: str, how: list[str], a: list[str]) -> str:
        """Return an access to memory: a load, a store, or an atomic one."""
        loads, kind = root in ("ld", "ldu"), whole(how[-1].replace("f", "b"))
        where = a[0] if root in ("st", "red") else a[1]
        registers = parts(a[0] if loads else a[-1])
        size = bits(kind) // 8
        if "param" in how:
            if "retval" in where or not loads:  # of a call, which is a fault
                return ";"
            (number,) = re.findall(r"param_(\d+)", where)
            return self.put(a[0], f"*({kind}*)(params + 8 * {number})", kind)
        all_bytes, way = size * len(registers), "READ" if loads else "WRITE"
        address = self.raw(where)
        if "shared" in how:
            memory = f"inside(shared, shared_size, (u32){address}, {all_bytes})"
        elif "local" in how:
            assert self.local is not None
            memory = f"inside(t->local, {self.local[2]}, (u32){address}, {all_bytes})"
        elif where[1:].lstrip().startswith("%"):
            self.sites += 1
            memory = f"global_at({address}, {all_bytes}, {way}, {self.sites})"
        else:
            memory = f"(u8*){address}"
        at = f"u8* at = {memory}; if (!at) return 0;"
        if loads:  # all are loaded before a register changes, since one may hold the address
            each = [f"{kind} q{i} = *({kind}*)(at + {i * size});" for i in range(len(registers))]
            return " ".join((at, *each, *(self.put(x, f"q{i}", kind) for i, x in enumerate(registers))))
        if root == "st":
            each = [f"*({kind}*)(at + {i * size}) = {self.raw(x)};" for i, x in enumerate(registers)]
            return " ".join((at, *each))
        (operation,) = (name for name in ATOMIC if name in how)
        real = how[-1] in REAL
        old = f"as_{how[-1]}(old)" if real else "old"
        new = ATOMIC[operation].format(a=old, b=self.value(a[int(root == "atom") + 1], how[-1]))
        keep = self.put(a[0], "old", kind) if root == "atom" else ""
        return f"{at} {kind} old = *({kind}*)at; *({kind}*)at = {f'of_{how[-1]}({new})' if real else new}; {keep}"

    # -- arithmetic --------------------------------------------------------------------------------------------

    def _compute(self, root: str, how: list[str], a: list[str]) -> str:
        kind = how[-1]
        single = kind.removesuffix("x2")
        known = PREDICATES if kind == "pred" else REALS if single in REAL else INTEGERS
        if root in ("mov", "selp"):  # they move bits of any type
            form, kind = ("{a}" if root == "mov" else INTEGERS[root]), kind if kind == "pred" else whole(kind)
            return self.put(a[0], self._filled(form, a[1:], kind), kind)
        form = known[".".join((root, *(part for part in how[:-1] if part not in NEUTRAL)))]
        if kind.endswith("x2"):  # the two numbers of 16 bits that each register holds
            made, read = (f"of_{single}", f"as_{single}") if single in REAL else ("(u16)", f"({single})")
            halves = []
            for shift in (0, 16):
                x = (f"{read}((u16)({self.raw(v)} >> {shift}))" for v in a[1:])
                half = form.format(**dict(zip("abc", x, strict=False)), f="f", n=16)
                halves.append(f"(u32){made}({half}) << {shift}")
            return self.put(a[0], " | ".join(halves), "u32")
        made = self._filled(form, a[1:], kind, "ftz" in how)
        wider = (
            f"{kind[0]}{2 * bits(kind)}" if how[0] == "wide" else "u32" if root in ("popc", "clz") else kind
        )
        return self.put(a[0], f"flushed({made})" if "ftz" in how else made, wider)

    def _filled(self, form: str, a: list[str], kind: str, flushes: bool = False) -> str:
        """Return a form with its operands: numbers of a type, but for the counts of bits and the predicate."""
        n = bits(kind)
        x = [self.value(v, kind) for v in a]
        if flushes:
            x = [f"flushed({each})" for each in x]
        if form == INTEGERS["mad.wide"]:
            x[2] = self.value(a[2], f"{kind[0]}{2 * n}")
        elif form in (INTEGERS["shl"], INTEGERS["shr"], INTEGERS["bfe"]):
            x[1:] = [f"((u32){self.raw(v)})" for v in a[1:]]
        elif form == INTEGERS["selp"]:
            x[2] = self.raw(a[2])
        types = {"wide": f"{kind[0] if kind[0] == 's' else 'u'}{2 * n}", "type": kind, "n": n}
        return form.format(**dict(zip("abcd", x, strict=False)), **types, f="" if kind == "f64" else "f")

    def _convert(self, how: list[str], a: list[str]) -> str:
        *how, to, source = how
        if "bf16x2" in (to, *how) or "f16x2" in (to, *how):
            of = "of_bf16" if "bf16x2" in (to, *how) else "of_f16"
            high, low = (f"(u32){of}({self.value(v, 'f32')})" for v in a[1:3])
            return self.put(a[0], f"({high} << 16) | {low}", "u32")
        value = self.value(a[1], source)
        if "ftz" in how and source == "f32":
            value = f"flushed({value})"
        for name in how:
            if name in ROUNDINGS:
                value = f"{ROUNDINGS[name]}{'' if source == 'f64' else 'f'}({value})"
            elif name not in ("rn", "ftz") or (source in REAL and to not in REAL and name == "rn"):
                raise Unknown(name)
        if to in REAL:
            value = f"({'double' if to == 'f64' else 'float'})({value})"
            return self.put(a[0], f"flushed({value})" if "ftz" in how and to == "f32" else value, to)
        return self.put(a[0], f"whole_{to}((double)({value}))" if source in REAL else value, to)

    # -- meetings ---------------------------------------------------------------------------------------------

    def _meet(self, op: str, a: list[str]) -> str:
        """Return how a thread waits for the others of its block, or of its warp, which exchange their operands."""
        self.meetings += 1
        if op not in MEETINGS:
            return f"t->pc = {self.meetings}; return WAITS_FOR_BLOCK; case {self.meetings}:;"
        into = [] if op.startswith("stmatrix") else parts(a.pop(0))
        given = [f"t->in[{i}] = {self.raw(x)};" for i, x in enumerate(x for each in a for x in parts(each))]
        wait = (
            f"t->op = {MEETINGS[op]}; t->pc = {self.meetings}; return WAITS_FOR_WARP; case {self.meetings}:;"
        )
        taken = (
            self.put(x, f"t->out[{i}]", "pred" if re.match(r"%p\d", x) else "u32") for i, x in enumerate(into)
        )
        return " ".join((*given, wait, *taken))
