import { createAgent, defineContext, type Model, memoryTools, type Store } from "statewright";
import { recallMemories, saveMemories } from "statewright/middleware";
import * as z from "zod";

const Visitor = defineContext({ user: z.string() });
const ofUser = ({ context }: { readonly context: { readonly user: string } }) => ["users", context.user];

// the model decides
export const withTools = (model: Model, store: Store) =>
  createAgent({ name: "host", model, context: Visitor, store, tools: memoryTools({ namespace: ofUser }) });

// the agent remembers automatically
export const byItself = (model: Model, small: Model, store: Store) =>
  createAgent({
    name: "host",
    model,
    context: Visitor,
    store,
    middleware: [
      recallMemories({ namespace: ofUser, limit: 5 }),
      saveMemories({ namespace: ofUser, model: small, ttlMs: 90 * 86_400_000 }),
    ],
  });

// a function selects the memories
export const birthdays = saveMemories({
  namespace: ofUser,
  extract: ({ messages }) => ({
    remember: messages.flatMap((message) =>
      message.role === "user"
        ? message.content.flatMap((block) => {
            const [, day] = (block.type === "text" && /birthday is (\w+ \d+)/.exec(block.text)) || [];
            return day === undefined ? [] : [{ topic: "birthday", text: `Birthday: ${day}` }];
          })
        : [],
    ),
  }),
});
