/** Replies of a simulated model, chosen at random, independent of a provider. */
import type { Chance } from "@statewright/testing";

/** Call in a reply; `args` is the streamed text, which may be invalid JSON. */
export interface WireCall {
  readonly id: string;
  readonly name: string;
  readonly args: string;
}

/** Reply before its encoding in a provider's format. */
export interface WireReply {
  readonly thought: string | undefined;
  readonly text: string;
  readonly calls: readonly WireCall[];
  readonly end: "stop" | "length" | "filter";
}

/** Outcome of a request. */
export type ServerReply =
  | { readonly kind: "reply"; readonly reply: WireReply }
  /** The reply stops after some of its frames: `cut` breaks the connection, `short` ends the response normally. */
  | { readonly kind: "cut" | "short"; readonly reply: WireReply; readonly after: number }
  /** A frame in the middle is invalid JSON. */
  | { readonly kind: "garbage"; readonly reply: WireReply; readonly after: number }
  /** The frames arrive one by one. */
  | { readonly kind: "slow"; readonly reply: WireReply }
  | { readonly kind: "status"; readonly status: 429 | 500 | 503 | 529 };

/** Tools available for calls. */
const toolNames = ["look", "order", "fail", "wait"] as const;

/** Creates the outcome of the next request of a conversation; `count` is the number of the request. */
export function createServerReply(chance: Chance, count: number): ServerReply {
  const roll = chance.getInteger(100);
  if (roll < 6) return { kind: "status", status: chance.pick([429, 500, 503, 529] as const) };
  const reply = createReply(chance, count);
  if (roll < 12) return { kind: chance.pick(["cut", "short", "garbage"] as const), reply, after: chance.getInteger(8) };
  return { kind: roll < 18 ? "slow" : "reply", reply };
}

function createReply(chance: Chance, count: number): WireReply {
  const thought = chance.flip(0.3) ? `I think ${createWords(chance, 6)}` : undefined;
  if (!chance.flip(0.55)) {
    const end = chance.flip(0.06) ? chance.pick(["length", "filter"] as const) : "stop";
    return { thought, text: createWords(chance, 12), calls: [], end };
  }
  const calls = Array.from({ length: 1 + chance.getInteger(4) }, (_, index) => createCall(chance, `${count}_${index}`));
  const text = chance.flip(0.4) ? chance.pick([createWords(chance, 5), "\n\n", " "]) : "";
  const isTruncated = chance.flip(0.08);
  return {
    thought,
    text,
    calls: isTruncated ? calls.map(truncateLastCall) : calls,
    end: isTruncated ? "length" : "stop",
  };
}

function createCall(chance: Chance, suffix: string): WireCall {
  const id = chance.flip(0.04)
    ? "call_same"
    : chance.pick([`call_${suffix}`, `functions.look:${suffix}`, `toolu_${suffix}_${"x".repeat(50)}`]);
  const name = chance.flip(0.05) ? chance.pick(["unheard_of", "look up!", "Look"]) : chance.pick(toolNames);
  return { id, name, args: createArgs(chance) };
}

function createArgs(chance: Chance): string {
  if (chance.flip(0.05)) return chance.pick(['{"text": "ha', "[1]", '"text"', "nonsense"]);
  if (chance.flip(0.05)) return "";
  if (chance.flip(0.05)) return JSON.stringify({ texts: 7 });
  return JSON.stringify({ text: createWords(chance, 3) });
}

function truncateLastCall(call: WireCall, index: number, all: readonly WireCall[]): WireCall {
  return index === all.length - 1 ? { ...call, args: call.args.slice(0, Math.floor(call.args.length / 2)) } : call;
}

function createWords(chance: Chance, maxWords: number): string {
  return Array.from({ length: 1 + chance.getInteger(maxWords) }, () =>
    chance.pick(["rain", "Oslo", "naïve", "漢字", "🎈", "x < y", '"q"']),
  ).join(" ");
}
