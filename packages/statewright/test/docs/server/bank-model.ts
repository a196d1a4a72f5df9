/** A model that writes slowly and a tool that transfers money, for a server that a test kills during both. */
import { appendFileSync } from "node:fs";
import { call, say, scriptedModel } from "@statewright/testing";
import { defineTool, getMessageText, type Injection, type Model } from "statewright";
import { systemWorld } from "statewright/adapter";
import * as z from "zod";

/** Creates a model that requests a transfer for "Send …" and reports its result in a long text. */
export function createBankModel(): Model {
  return scriptedModel(
    ({ messages }) => {
      const last = messages.at(-1);
      if (last?.role === "user")
        return getMessageText(last).startsWith("Send") ? call("transfer", { to: "Bob", euros: 5 }) : say("Hello.");
      return say(`${getMessageText(last)}. ${"It is done, and here is a long word of thanks. ".repeat(5)}`);
    },
    { pace: { world: systemWorld(), chunkMs: 5 } },
  );
}

/** Defines a tool that appends the idempotency key of each transfer to `bank.txt`. */
export function defineTransfer<Context>(userId: Injection<string, Context>) {
  return defineTool({
    name: "transfer",
    description: "Send money to a person.",
    input: z.object({ to: z.string(), euros: z.number() }),
    inject: { userId },
    effect: "idempotent",
    safety: { access: "write", spend: true, confirm: "always" },
    run: ({ to, euros }, { injected, idempotencyKey }) => {
      appendFileSync("bank.txt", `${idempotencyKey}\n`);
      return `${injected.userId} sent ${euros} euros to ${to}`;
    },
  });
}
