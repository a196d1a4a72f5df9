/** Token sums of a growing conversation: each turn counts only new messages, and compares the others by identity. */
import type { Message } from "@statewright/core";
import type { TokenMeter } from "./count-tokens.ts";

/** Token sums of a conversation. */
export interface TokenSums {
  readonly total: number;
  /** Returns the tokens before an index. */
  readonly getTokensBefore: (index: number) => number;
  /**
   * Returns the first index with at least this many tokens before it; system messages do not count, because they
   * always remain.
   */
  readonly findIndexAfter: (tokens: number) => number;
}

interface TokenAccount {
  readonly messages: Message[];
  /** Prefix sums of tokens: before each message, and after the last message. `movable` excludes system messages. */
  readonly sums: number[];
  readonly movable: number[];
}

/** Creates a token ledger. Identifies a conversation by the first message object. */
export function createTokenLedger(meter: TokenMeter): (messages: readonly Message[]) => TokenSums {
  const accounts: WeakMap<Message, TokenAccount> = new WeakMap();
  return (messages) => {
    const [first] = messages;
    const account = (first && accounts.get(first)) ?? { messages: [], sums: [0], movable: [0] };
    if (first !== undefined) accounts.set(first, account);
    updateAccount(account, messages, meter);
    return {
      total: account.sums[messages.length] ?? 0,
      getTokensBefore: (index) => account.sums[index] ?? 0,
      findIndexAfter: (tokens) => findFirstAtLeast(account.movable, tokens, messages.length),
    };
  };
}

/** Updates an account to these messages: drops changed messages, counts new messages. */
function updateAccount(
  { messages: counted, sums, movable }: TokenAccount,
  messages: readonly Message[],
  meter: TokenMeter,
): void {
  let commonLength = 0;
  while (commonLength < counted.length && counted[commonLength] === messages[commonLength]) commonLength += 1;
  counted.length = commonLength;
  sums.length = commonLength + 1;
  movable.length = commonLength + 1;
  for (let index = commonLength; index < messages.length; index++) {
    const message = messages[index];
    if (message === undefined) continue;
    const tokens = meter.countMessage(message);
    counted.push(message);
    sums.push((sums[index] ?? 0) + tokens);
    movable.push((movable[index] ?? 0) + (message.role === "system" ? 0 : tokens));
  }
}

/** Binary search: returns the first index whose sum is at least `min`; `end` without a match. */
function findFirstAtLeast(sums: readonly number[], min: number, end: number): number {
  let low = 0;
  let high = end;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sums[middle] ?? 0) >= min) high = middle;
    else low = middle + 1;
  }
  return low;
}
