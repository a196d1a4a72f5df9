/** Tokens of a conversation as it grows: each turn adds what is new, and looks at the rest only to see that it is the same. */
import type { Message } from "@statewright/core";
import type { TokenMeter } from "./count-tokens.ts";

/** The sums of one conversation. */
export interface TokenSums {
  readonly total: number;
  /** Tokens before a place. */
  readonly before: (index: number) => number;
  /** The first place with so many tokens before it; those of system messages do not count, since they stay. */
  readonly placeAfter: (tokens: number) => number;
}

interface Account {
  readonly messages: Message[];
  /** Tokens before each message and behind the last one; in `movable` without those of system messages. */
  readonly sums: number[];
  readonly movable: number[];
}

/** Sums by a meter. A conversation is known again by its first message. */
export function tokenLedger(meter: TokenMeter): (messages: readonly Message[]) => TokenSums {
  const accounts: WeakMap<Message, Account> = new WeakMap();
  return (messages) => {
    const [first] = messages;
    const account = (first && accounts.get(first)) ?? { messages: [], sums: [0], movable: [0] };
    if (first !== undefined) accounts.set(first, account);
    bring(account, messages, meter);
    return {
      total: account.sums[messages.length] ?? 0,
      before: (index) => account.sums[index] ?? 0,
      placeAfter: (tokens) => firstFrom(account.movable, tokens, messages.length),
    };
  };
}

/** Bring an account to these messages: what it holds of others goes, what is new is counted. */
function bring({ messages: known, sums, movable }: Account, messages: readonly Message[], meter: TokenMeter): void {
  let same = 0;
  while (same < known.length && known[same] === messages[same]) same += 1;
  known.length = same;
  sums.length = same + 1;
  movable.length = same + 1;
  for (let index = same; index < messages.length; index++) {
    const message = messages[index];
    if (message === undefined) continue;
    const tokens = meter.message(message);
    known.push(message);
    sums.push((sums[index] ?? 0) + tokens);
    movable.push((movable[index] ?? 0) + (message.role === "system" ? 0 : tokens));
  }
}

/** The first index whose sum is at least so much; `end` where none is. */
function firstFrom(sums: readonly number[], least: number, end: number): number {
  let low = 0;
  let high = end;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sums[middle] ?? 0) >= least) high = middle;
    else low = middle + 1;
  }
  return low;
}
