/** Normalized requests of recordings, without the ids and times that differ between runs. */
import { createHash } from "node:crypto";
import type { ContentBlock, Message, ModelRequest } from "@statewright/core";

/**
 * Returns a request as plain data: without message ids, headers and provider data, with call ids numbered in order.
 */
export function normalizeRequest(request: ModelRequest): unknown {
  const { headers: _headers, messages, tools, ...settings } = request;
  const calls = new Map<string, string>();
  const getCallId = (id: string): string => {
    const known = calls.get(id) ?? `call_${calls.size + 1}`;
    calls.set(id, known);
    return known;
  };
  return sortKeys({
    ...settings,
    messages: messages.map((message) => normalizeMessage(message, getCallId)),
    tools: tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
  });
}

function normalizeMessage(message: Message, getCallId: (id: string) => string): unknown {
  const { role } = message;
  switch (role) {
    case "system":
      return { role, content: message.content };
    case "user":
      return { role, content: message.content.map(omitProvider) };
    case "assistant":
      return {
        role,
        content: message.content.map((block) =>
          block.type === "call" ? { ...omitProvider(block), id: getCallId(block.id) } : omitProvider(block),
        ),
      };
    case "tool":
      return {
        role,
        call: getCallId(message.callId),
        name: message.name,
        content: message.content.map((block) => omitHandle(omitProvider(block))),
        isError: message.isError,
      };
  }
}

function omitProvider<Block extends { readonly type: string }>(block: Block): Omit<Block, "provider"> {
  const { provider: _provider, ...rest } = block as Block & { readonly provider?: unknown };
  return rest;
}

/** Omits the artifact handle, which belongs to one thread. */
function omitHandle(block: Omit<ContentBlock, "provider">): unknown {
  if (!("ref" in block) || typeof block.ref !== "object" || block.ref === null) return block;
  const { handle: _handle, ...ref } = block.ref as { readonly handle?: unknown };
  return { ...block, ref };
}

/** Returns the data with sorted object keys, without undefined values. */
function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, each]) => each !== undefined)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([key, each]) => [key, sortKeys(each)]),
  );
}

/** Computes the key of a normalized request. */
export function computeDigest(request: unknown): string {
  return createHash("sha256").update(JSON.stringify(request)).digest("hex").slice(0, 16);
}

/**
 * Lists the differences of two normalized requests, a single line per path: `messages.1.content.0.text: recorded
 * "Oslo", asked "Rome"`.
 */
export function listDifferences(recorded: unknown, asked: unknown, path: readonly string[] = []): readonly string[] {
  if (isObjectOrArray(recorded) && isObjectOrArray(asked) && Array.isArray(recorded) === Array.isArray(asked)) {
    const keys = new Set([...Object.keys(recorded), ...Object.keys(asked)]);
    return [...keys].flatMap((key) => listDifferences(recorded[key], asked[key], [...path, key]));
  }
  if (Object.is(recorded, asked)) return [];
  return [
    `${path.join(".")}: recorded ${formatDifference(recorded, asked)}, asked ${formatDifference(asked, recorded)}`,
  ];
}

function isObjectOrArray(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** Formats a value briefly; of two long texts, the part at the first difference. */
function formatDifference(value: unknown, other: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value !== "string" || typeof other !== "string") return truncate(JSON.stringify(value));
  let same = 0;
  while (same < value.length && value[same] === other[same]) same++;
  const from = Math.max(0, same - 20);
  return truncate(`${from > 0 ? "…" : ""}${JSON.stringify(value.slice(from))}`);
}

function truncate(text: string): string {
  return text.length <= 80 ? text : `${text.slice(0, 80)}…`;
}
