import type { UIMessage } from "ai";
import * as z from "zod";

/** Graph that the page talks to. */
export const graph = "assistant";

/** Refusal of the server: its status, its code and its sentence. */
export class ServerError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.name = "ServerError";
    this.status = status;
    this.code = code;
  }
}

const problem = z.object({ status: z.number(), code: z.string(), title: z.string(), detail: z.string().optional() });

/** Reads a problem from the text of an error of `useChat`, which is the body of the response. */
export function readProblem(text: string): ServerError | undefined {
  try {
    const { data } = problem.safeParse(JSON.parse(text));
    return data && new ServerError(data.status, data.code, data.detail ?? data.title);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Headers of each request of a user. */
export function createHeaders(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}` };
}

/** Sends a request. Throws `ServerError` for a refusal, and the error of `fetch` when the server cannot be reached. */
async function getJson(path: string, token: string): Promise<unknown> {
  const response = await fetch(path, { headers: createHeaders(token) });
  if (response.ok) return response.json();
  const known = readProblem(await response.text());
  throw known ?? new ServerError(response.status, "unknown", `The server answered ${response.status}.`);
}

const messages = z.array(
  z.custom<UIMessage>((value) => z.object({ id: z.string(), parts: z.array(z.unknown()) }).safeParse(value).success),
);

/** Loads the messages of a chat; a chat that does not exist yet has none. */
export async function loadMessages(chat: string, token: string): Promise<UIMessage[]> {
  return messages.parse(await getJson(`/ui/${graph}/${encodeURIComponent(chat)}/messages`, token));
}

const threads = z.object({
  data: z.array(z.object({ id: z.string(), title: z.string().optional(), status: z.string().optional() })),
});

/** Chat in the list of the user. */
export type ChatEntry = z.infer<typeof threads>["data"][number];

/** Lists the chats of the tenant, the newest first. */
export async function listChats(token: string): Promise<readonly ChatEntry[]> {
  return threads.parse(await getJson(`/api/threads?graph=${graph}&limit=50`, token)).data;
}
