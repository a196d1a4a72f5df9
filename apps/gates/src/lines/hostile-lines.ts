/** What a plugin might write for one call: noise of every kind, then its answer, cut into pieces anywhere. */
import type { Chance } from "@statewright/testing";

/** The bytes for one call, and what must come of them. */
export interface HostileLines {
  readonly how: string;
  readonly pieces: readonly string[];
  /** The text of the answer; undefined where the lines break the protocol, and the call must fail. */
  readonly answer: string | undefined;
}

/** A way of being hostile: lines before the answer, and whether they break the rule of one object a line. */
interface Way {
  readonly how: string;
  readonly lines: (chance: Chance, id: string) => readonly (string | Uint8Array)[];
  readonly breaks?: boolean;
}

const signs = [
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

const ways: readonly Way[] = [
  { how: "nothing", lines: () => [] },
  { how: "empty lines", lines: (chance) => Array.from({ length: chance.below(5) }, () => "") },
  { how: "words", lines: (chance) => [`x${words(chance, 200)}`] },
  {
    how: "bytes",
    lines: (chance) => [
      Uint8Array.from({ length: 1 + chance.below(300) }, () => noLineFeed(chance.below(256))).map(noBrace),
    ],
  },
  { how: "other JSON", lines: (chance) => [chance.of(["null", "true", "17", "[1,[2]]", '"{"', "[{}]"])] },
  { how: "a log in JSON", lines: () => ['{"level":"info","msg":"half way"}', '  {"content":"no list"}\r'] },
  {
    how: "an answer of another",
    lines: (chance) => [`[${JSON.stringify({ content: text(`wrong ${chance.below(9)}`) })}]`],
  },
  {
    how: "an update",
    lines: (_chance, id) => [JSON.stringify({ type: "update", call_id: id, content: text("wrong") })],
  },
  {
    how: "an update of nobody",
    lines: () => ['{"type":"update","call_id":"none","content":[{"type":"text","text":"wrong"}]}'],
  },
  { how: "a name of JavaScript", lines: () => ['{"__proto__":{"content":[{"type":"text","text":"wrong"}]}}'] },
  { how: "deep", lines: (chance) => [`${"[".repeat(1 + chance.below(5_000))}`] },
  { how: "long", lines: (chance) => ["x".repeat(chance.below(100_000))] },
  {
    how: "half an object",
    breaks: true,
    lines: (chance) => [`{"content":[{"type":"text","text":"${"wrong".slice(0, chance.below(5))}`],
  },
  { how: "an object over lines", breaks: true, lines: () => ["{", '  "content": []', "}"] },
  { how: "too long", breaks: true, lines: () => ["x".repeat(longestLine + 1)] },
];

/** How long a line may be, as the plugins of this gate are told. */
export const longestLine = 200_000;

const breaking = ways.filter(({ breaks }) => breaks === true);
const harmless = ways.filter(({ breaks }) => breaks !== true);

/**
 * The bytes for a call. One in a hundred breaks the protocol: the plugin has to be started anew then. `before` is the call
 * before it, where that was answered: it may be answered once more.
 */
export function hostileLines(
  chance: Chance,
  id: string,
  answer: string,
  before: { readonly id: string; readonly answer: string } | undefined,
): HostileLines {
  const isBroken = chance.below(100) === 0;
  const chosen = Array.from({ length: chance.below(4) }, () => chance.of(harmless));
  if (isBroken) chosen.push(chance.of(breaking));
  const said = JSON.stringify({ call_id: id, content: text(answer), error: false });
  const again =
    before === undefined || chance.below(10) > 0 ? [] : [{ call_id: before.id, content: text(before.answer) }];
  const lines = [
    ...again.map((each) => JSON.stringify(each)),
    ...chosen.flatMap(({ lines: make }) => make(chance, id)),
    said,
    ...(chance.below(10) === 0 ? [said] : []),
  ];
  const bytes = Buffer.concat(lines.flatMap((line) => [Buffer.from(line), Buffer.from("\n")]));
  return {
    how: chosen.map(({ how }) => how).join(" + ") || "nothing",
    pieces: cut(chance, bytes).map((piece) => piece.toString("base64")),
    answer: isBroken ? undefined : answer,
  };
}

/** Anywhere: also inside a sign of UTF-8. */
function cut(chance: Chance, bytes: Buffer): readonly Buffer[] {
  const places = Array.from({ length: chance.below(6) }, () => chance.below(bytes.length)).sort((a, b) => a - b);
  return [0, ...places].map((from, index) => bytes.subarray(from, places[index] ?? bytes.length));
}

function words(chance: Chance, most: number): string {
  return Array.from({ length: chance.below(most) }, () => chance.of(signs)).join("");
}

function text(said: string): readonly object[] {
  return [{ type: "text", text: said }];
}

function noLineFeed(byte: number): number {
  return byte === 10 ? 13 : byte;
}

/** A line of bytes that begins as an object by chance would be another way. */
function noBrace(byte: number): number {
  return byte === 123 ? 124 : byte;
}
