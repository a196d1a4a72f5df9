/** A chat that remembers: every conversation is kept, and what is worth knowing outlives it. */
import {
  type AnyModel,
  createAgent,
  defineContext,
  type Model,
  memoryTools,
  recallMemories,
  type Store,
  summarise,
} from "statewright";
import * as z from "zod";

const User = defineContext({ userId: z.string() });

/** Whose memories they are is said by the context, never by the model. */
const mine = ({ context }: { readonly context: { readonly userId: string } }) => ["users", context.userId];

/** An assistant of one user. `summariser` writes the summary when a conversation grows long. */
export function chat(model: AnyModel, { store, summariser }: { readonly store: Store; readonly summariser: Model }) {
  return createAgent({
    name: "chat",
    model,
    store,
    context: User,
    instructions: "You help one user at home. Remember what they like and what they decided.",
    tools: memoryTools({ namespace: mine }),
    middleware: [recallMemories({ namespace: mine }), summarise({ model: summariser, triggerTokens: 50_000 })],
  });
}

/** Say something in a conversation, and give what the assistant answers. */
export async function tell(
  assistant: ReturnType<typeof chat>,
  { userId, thread, words }: { readonly userId: string; readonly thread: string; readonly words: string },
): Promise<string> {
  let answer = "";
  for await (const text of assistant.run({ thread, input: words, context: { userId } }).text()) answer += text;
  return answer;
}
