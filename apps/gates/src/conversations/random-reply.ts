/** What a simulated model answers: decided by chance, in the terms of no provider. */
import type { Chance } from "@statewright/testing";

/** A call in an answer; `args` is the text that is streamed, which may be broken. */
export interface WireCall {
  readonly id: string;
  readonly name: string;
  readonly args: string;
}

/** An answer, before a provider's format says it. */
export interface WireReply {
  readonly thought: string | undefined;
  readonly text: string;
  readonly calls: readonly WireCall[];
  readonly end: "stop" | "length" | "filter";
}

/** What becomes of a request. */
export type Fate =
  | { readonly kind: "reply"; readonly reply: WireReply }
  /** The answer breaks off after a part of its frames: the connection is cut, or it ends as if all were well. */
  | { readonly kind: "cut" | "short"; readonly reply: WireReply; readonly after: number }
  /** A frame in the middle is no JSON. */
  | { readonly kind: "garbage"; readonly reply: WireReply; readonly after: number }
  /** The frames come one by one. */
  | { readonly kind: "slow"; readonly reply: WireReply }
  | { readonly kind: "status"; readonly status: 429 | 500 | 503 | 529 };

/** The tools that answers may call. */
const toolNames = ["look", "order", "fail", "wait"] as const;

/** What becomes of the next request of a conversation; `count` numbers its answers. */
export function nextFate(chance: Chance, count: number): Fate {
  const roll = chance.below(100);
  if (roll < 6) return { kind: "status", status: chance.of([429, 500, 503, 529] as const) };
  const reply = randomReply(chance, count);
  if (roll < 12) return { kind: chance.of(["cut", "short", "garbage"] as const), reply, after: chance.below(8) };
  return { kind: roll < 18 ? "slow" : "reply", reply };
}

function randomReply(chance: Chance, count: number): WireReply {
  const thought = chance.share(0.3) ? `I think ${words(chance, 6)}` : undefined;
  if (!chance.share(0.55)) {
    const end = chance.share(0.06) ? chance.of(["length", "filter"] as const) : "stop";
    return { thought, text: words(chance, 12), calls: [], end };
  }
  const calls = Array.from({ length: 1 + chance.below(4) }, (_, index) => callOf(chance, `${count}_${index}`));
  const text = chance.share(0.4) ? chance.of([words(chance, 5), "\n\n", " "]) : "";
  const isCut = chance.share(0.08);
  return { thought, text, calls: isCut ? calls.map(halved) : calls, end: isCut ? "length" : "stop" };
}

function callOf(chance: Chance, mark: string): WireCall {
  const id = chance.share(0.04)
    ? "call_same"
    : chance.of([`call_${mark}`, `functions.look:${mark}`, `toolu_${mark}_${"x".repeat(50)}`]);
  const name = chance.share(0.05) ? chance.of(["unheard_of", "look up!", "Look"]) : chance.of(toolNames);
  return { id, name, args: argsOf(chance) };
}

function argsOf(chance: Chance): string {
  if (chance.share(0.05)) return chance.of(['{"text": "ha', "[1]", '"text"', "nonsense"]);
  if (chance.share(0.05)) return "";
  if (chance.share(0.05)) return JSON.stringify({ texts: 7 });
  return JSON.stringify({ text: words(chance, 3) });
}

function halved(call: WireCall, index: number, all: readonly WireCall[]): WireCall {
  return index === all.length - 1 ? { ...call, args: call.args.slice(0, Math.floor(call.args.length / 2)) } : call;
}

function words(chance: Chance, most: number): string {
  return Array.from({ length: 1 + chance.below(most) }, () =>
    chance.of(["rain", "Oslo", "naïve", "漢字", "🎈", "x < y", '"q"']),
  ).join(" ");
}
