/** Chat with memory: stores every conversation, and remembers facts about the user across conversations. */
import { type AnyModel, createAgent, defineContext, type Model, memoryTools, type Store } from "statewright";
import { recallMemories, summarise } from "statewright/middleware";
import * as z from "zod";

const User = defineContext({ userId: z.string() });

/** Namespace of the user's memories. Comes from the context, never from the model. */
const getUserNamespace = ({ context }: { readonly context: { readonly userId: string } }) => ["users", context.userId];

/** Creates an assistant for one user. `summariser` summarizes long conversations. */
export function createChatAgent(
  model: AnyModel,
  { store, summariser }: { readonly store: Store; readonly summariser: Model },
) {
  return createAgent({
    name: "chat",
    model,
    store,
    context: User,
    instructions: "You help one user at home. Remember what they like and what they decided.",
    tools: memoryTools({ namespace: getUserNamespace }),
    middleware: [
      recallMemories({ namespace: getUserNamespace }),
      summarise({ model: summariser, triggerTokens: 50_000 }),
    ],
  });
}

/** Sends a message in a conversation. Returns the answer of the assistant. */
export async function sendMessage(
  assistant: ReturnType<typeof createChatAgent>,
  { userId, thread, words }: { readonly userId: string; readonly thread: string; readonly words: string },
): Promise<string> {
  let answer = "";
  for await (const delta of assistant.run({ thread, input: words, context: { userId } }).text()) answer += delta;
  return answer;
}
