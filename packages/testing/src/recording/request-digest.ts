/** Requests as recordings know them: what they say, without the ids and times that differ from run to run. */
import { createHash } from "node:crypto";
import type { ContentBlock, Message, ModelRequest } from "@statewright/core";

/** A request in plain data. Ids of messages are left out, ids of calls count up in their order; no headers, no provider's data. */
export function normalised(request: ModelRequest): unknown {
  const { headers: _headers, messages, tools, ...settings } = request;
  const calls = new Map<string, string>();
  const idOf = (id: string): string => {
    const known = calls.get(id) ?? `call_${calls.size + 1}`;
    calls.set(id, known);
    return known;
  };
  return sorted({
    ...settings,
    messages: messages.map((message) => messageOf(message, idOf)),
    tools: tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
  });
}

function messageOf(message: Message, idOf: (id: string) => string): unknown {
  const { role } = message;
  switch (role) {
    case "system":
      return { role, content: message.content };
    case "user":
      return { role, content: message.content.map(withoutProvider) };
    case "assistant":
      return {
        role,
        content: message.content.map((block) =>
          block.type === "call" ? { ...withoutProvider(block), id: idOf(block.id) } : withoutProvider(block),
        ),
      };
    case "tool":
      return {
        role,
        call: idOf(message.callId),
        name: message.name,
        content: message.content.map((block) => withoutHandle(withoutProvider(block))),
        isError: message.isError,
      };
  }
}

function withoutProvider<Block extends { readonly type: string }>(block: Block): Omit<Block, "provider"> {
  const { provider: _provider, ...said } = block as Block & { readonly provider?: unknown };
  return said;
}

/** A handle leads into one thread. */
function withoutHandle(block: Omit<ContentBlock, "provider">): unknown {
  if (!("ref" in block) || typeof block.ref !== "object" || block.ref === null) return block;
  const { handle: _handle, ...ref } = block.ref as { readonly handle?: unknown };
  return { ...block, ref };
}

/** The same data with the keys of every object in order, without what is undefined. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, each]) => each !== undefined)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([key, each]) => [key, sorted(each)]),
  );
}

/** The key under which a normalised request is recorded. */
export function digestOf(request: unknown): string {
  return createHash("sha256").update(JSON.stringify(request)).digest("hex").slice(0, 16);
}

/** How two normalised requests differ, one line for each place: `messages.1.content.0.text: recorded "Oslo", asked "Rome"`. */
export function differences(recorded: unknown, asked: unknown, at: readonly string[] = []): readonly string[] {
  if (isBranch(recorded) && isBranch(asked) && Array.isArray(recorded) === Array.isArray(asked)) {
    const keys = new Set([...Object.keys(recorded), ...Object.keys(asked)]);
    return [...keys].flatMap((key) => differences(recorded[key], asked[key], [...at, key]));
  }
  if (Object.is(recorded, asked)) return [];
  return [`${at.join(".")}: recorded ${shownAs(recorded, asked)}, asked ${shownAs(asked, recorded)}`];
}

function isBranch(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** A value in a few words; of two long texts the part where they part ways. */
function shownAs(value: unknown, other: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value !== "string" || typeof other !== "string") return cut(JSON.stringify(value));
  let same = 0;
  while (same < value.length && value[same] === other[same]) same++;
  const from = Math.max(0, same - 20);
  return cut(`${from > 0 ? "…" : ""}${JSON.stringify(value.slice(from))}`);
}

function cut(text: string): string {
  return text.length <= 80 ? text : `${text.slice(0, 80)}…`;
}
