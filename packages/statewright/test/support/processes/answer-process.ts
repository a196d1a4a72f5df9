/** A graph with an interrupt, and a process that answers it on request: one of two competing processes. */
import process from "node:process";
import { fileURLToPath } from "node:url";
import {
  channel,
  defineGraph,
  defineState,
  END,
  isStatewrightError,
  resume,
  START,
  type Store,
  sqliteStore,
} from "statewright";
import * as z from "zod";

const State = defineState({ log: channel.list(z.string()) });

export const asking = defineGraph({ name: "asking", version: 1, state: State, interrupts: { who: z.string() } })
  .nodes({
    ask: async (_state, { interrupt, step }) => {
      const who = await interrupt("who");
      await step("effect", () => who, { effect: "once" });
      return { log: [who] };
    },
    end: () => ({ log: ["end"] }),
  })
  .edges({ [START]: "ask", ask: "end", end: END });

/** Answers the interrupt; returns `done`, or the error code with the winning answer if the error has one. */
export async function answer(store: Store, thread: string, who: string): Promise<readonly [string, string?]> {
  try {
    const { status } = await resume(asking, { store, thread, answers: { who } }).result;
    return [status];
  } catch (error) {
    if (!isStatewrightError(error)) throw error;
    const { details } = error as { readonly details?: { readonly answer?: string } };
    return details?.answer === undefined ? [error.code] : [error.code, details.answer];
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const store = sqliteStore(process.argv[2] as string, { durability: "normal" });
  process.on("message", (thread: string) => {
    answer(store, thread, String(process.pid)).then((outcome) => process.send?.(outcome));
  });
  process.on("disconnect", () => process.exit());
  process.send?.("ready");
}
