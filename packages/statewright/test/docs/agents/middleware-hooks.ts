/** The snippets of docs/middleware.md about hooks around models and at the ends of an agent. */
import { channel, defineMiddleware, getMessageText } from "statewright";
import * as z from "zod";

const asked = channel.reduce(z.number().default(0), (sum, more: number) => sum + more);

/** Remembers who is spoken to, asks before the first dear request, counts, and wants an answer with a source. */
export const careful = (nameOf: (user: string) => Promise<string>) =>
  defineMiddleware<{ readonly user: string }>({
    name: "careful",
    required: true,
    channels: { asked },
    interrupts: { dear: z.boolean() },
    beforeAgent: async ({ context, write }) => {
      const text = `The user is called ${await nameOf(context.user)}.`;
      write({ messages: [{ role: "user", id: "name", content: [{ type: "text", text }] }] });
    },
    beforeModel: async (request, { state, interrupt, write, end }) => {
      const { asked: before } = state as { readonly asked: number };
      const isDear = JSON.stringify(request.messages).length > 10_000;
      if (isDear && before === 0 && !(await interrupt("dear", { payload: "This will be dear." })))
        return end("I was told not to.", { by: "careful", reason: "too dear" });
      write({ asked: 1 });
      return undefined;
    },
    afterAgent: ({ messages, ended }, { run }) => {
      const last = messages.at(-1);
      if (ended.by !== "answer" || last === undefined || getMessageText(last).includes("https://")) return undefined;
      const text = "Say where you have it from, with an address.";
      return { messages: [{ role: "user", id: `source:${run.task}`, content: [{ type: "text", text }] }] };
    },
  });
