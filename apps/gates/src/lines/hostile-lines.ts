/** Hostile output of a plugin for one call: noise of every kind, then the result, split at random offsets. */
import type { Chance } from "@statewright/testing";

/** Output for one call, and the expected result. */
export interface HostileLines {
  readonly kind: string;
  readonly pieces: readonly string[];
  /** Text of the result; undefined for lines that break the protocol, for which the call must fail. */
  readonly answer: string | undefined;
}

/**
 * Kind of noise: lines before the result. `breaksProtocol` marks lines that break the rule of one JSON object per
 * line.
 */
interface Noise {
  readonly kind: string;
  readonly createLines: (chance: Chance, id: string) => readonly (string | Uint8Array)[];
  readonly breaksProtocol?: boolean;
}

const characters = [
  "a",
  '"',
  "\\",
  "{",
  "}",
  "[",
  "]",
  ":",
  ",",
  " ",
  "\t",
  "\r",
  "\u2028",
  "\u2029",
  "\u0085",
  "\u0000",
  "é",
  "🙂",
  "\ufeff",
];

const noises: readonly Noise[] = [
  { kind: "nothing", createLines: () => [] },
  { kind: "empty lines", createLines: (chance) => Array.from({ length: chance.getInteger(5) }, () => "") },
  { kind: "words", createLines: (chance) => [`x${createText(chance, 200)}`] },
  {
    kind: "bytes",
    createLines: (chance) => [
      Uint8Array.from({ length: 1 + chance.getInteger(300) }, () => replaceLineFeed(chance.getInteger(256))).map(
        replaceBrace,
      ),
    ],
  },
  { kind: "other JSON", createLines: (chance) => [chance.pick(["null", "true", "17", "[1,[2]]", '"{"', "[{}]"])] },
  { kind: "a log in JSON", createLines: () => ['{"level":"info","msg":"half way"}', '  {"content":"no list"}\r'] },
  {
    kind: "a result of another tool",
    createLines: (chance) => [`[${JSON.stringify({ content: toContent(`wrong ${chance.getInteger(9)}`) })}]`],
  },
  {
    kind: "an update",
    createLines: (_chance, id) => [JSON.stringify({ type: "update", call_id: id, content: toContent("wrong") })],
  },
  {
    kind: "an update of an unknown call",
    createLines: () => ['{"type":"update","call_id":"none","content":[{"type":"text","text":"wrong"}]}'],
  },
  {
    kind: "a reserved key of JavaScript",
    createLines: () => ['{"__proto__":{"content":[{"type":"text","text":"wrong"}]}}'],
  },
  { kind: "deep", createLines: (chance) => [`${"[".repeat(1 + chance.getInteger(5_000))}`] },
  { kind: "long", createLines: (chance) => ["x".repeat(chance.getInteger(100_000))] },
  {
    kind: "half an object",
    breaksProtocol: true,
    createLines: (chance) => [`{"content":[{"type":"text","text":"${"wrong".slice(0, chance.getInteger(5))}`],
  },
  { kind: "an object over lines", breaksProtocol: true, createLines: () => ["{", '  "content": []', "}"] },
  { kind: "too long", breaksProtocol: true, createLines: () => ["x".repeat(lineLimit + 1)] },
];

/** Maximum line length, as configured for the plugins of this gate. */
export const lineLimit = 200_000;

const breakingNoises = noises.filter(({ breaksProtocol }) => breaksProtocol === true);
const harmlessNoises = noises.filter(({ breaksProtocol }) => breaksProtocol !== true);

/**
 * Creates the output for a call. One call in a hundred breaks the protocol and forces a restart of the plugin.
 * `previous` is the previous call, if that call succeeded; its result may be repeated.
 */
export function createHostileLines(
  chance: Chance,
  id: string,
  answer: string,
  previous: { readonly id: string; readonly answer: string } | undefined,
): HostileLines {
  const isBroken = chance.getInteger(100) === 0;
  const chosen = Array.from({ length: chance.getInteger(4) }, () => chance.pick(harmlessNoises));
  if (isBroken) chosen.push(chance.pick(breakingNoises));
  const resultLine = JSON.stringify({ call_id: id, content: toContent(answer), error: false });
  const repeated =
    previous === undefined || chance.getInteger(10) > 0
      ? []
      : [{ call_id: previous.id, content: toContent(previous.answer) }];
  const lines = [
    ...repeated.map((each) => JSON.stringify(each)),
    ...chosen.flatMap(({ createLines: make }) => make(chance, id)),
    resultLine,
    ...(chance.getInteger(10) === 0 ? [resultLine] : []),
  ];
  const bytes = Buffer.concat(lines.flatMap((line) => [Buffer.from(line), Buffer.from("\n")]));
  return {
    kind: chosen.map(({ kind }) => kind).join(" + ") || "nothing",
    pieces: splitBytes(chance, bytes).map((piece) => piece.toString("base64")),
    answer: isBroken ? undefined : answer,
  };
}

/** Splits at any byte, also within a UTF-8 character. */
function splitBytes(chance: Chance, bytes: Buffer): readonly Buffer[] {
  const offsets = Array.from({ length: chance.getInteger(6) }, () => chance.getInteger(bytes.length)).sort(
    (a, b) => a - b,
  );
  return [0, ...offsets].map((from, index) => bytes.subarray(from, offsets[index] ?? bytes.length));
}

function createText(chance: Chance, maxLength: number): string {
  return Array.from({ length: chance.getInteger(maxLength) }, () => chance.pick(characters)).join("");
}

function toContent(value: string): readonly object[] {
  return [{ type: "text", text: value }];
}

function replaceLineFeed(byte: number): number {
  return byte === 10 ? 13 : byte;
}

/** A random line that starts like an object would be another kind of noise. */
function replaceBrace(byte: number): number {
  return byte === 123 ? 124 : byte;
}
