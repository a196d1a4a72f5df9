/** Hooks around models, and at the start and the end of an agent: a program of docs/middleware.md. */
import { channel, defineMiddleware, getMessageText } from "statewright";
import * as z from "zod";

const asked = channel.reduce(z.number().default(0), (sum, more: number) => sum + more);

/** Adds the user's name, asks before the first expensive request, counts requests, and requires a source in the answer. */
export const careful = (nameOf: (user: string) => Promise<string>) =>
  defineMiddleware<{ readonly user: string }>({
    name: "careful",
    required: true,
    channels: { asked },
    interrupts: { expensive: z.boolean() },
    beforeAgent: async ({ context, write }) => {
      const text = `The user is called ${await nameOf(context.user)}.`;
      write({ messages: [{ role: "user", id: "name", content: [{ type: "text", text }] }] });
    },
    beforeModel: async (request, { state, interrupt, write, end }) => {
      const { asked: before } = state as { readonly asked: number };
      const isExpensive = JSON.stringify(request.messages).length > 10_000;
      if (isExpensive && before === 0 && !(await interrupt("expensive", { payload: "This request is expensive." })))
        return end("The request was refused.", { by: "careful", reason: "too expensive" });
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
