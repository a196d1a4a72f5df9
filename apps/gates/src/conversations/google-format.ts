/** Google's generateContent, with what its server refuses. */
import { randomUUID } from "node:crypto";
import {
  type Body,
  frame,
  isJsonObject,
  listAt,
  objectOf,
  pieces,
  type WireFormat,
  type WireSession,
} from "./wire-format.ts";

/** What clients send in place of a signature that they do not have. */
const unsigned = "skip_thought_signature_validator";

export const googleFormat: WireFormat = { open };

function open(): WireSession {
  const signed = new Set<unknown>();
  return {
    problems: (body) => [...problemsOf(body, signed)],
    frames: ({ thought, text, calls, end }) => {
      const chunk = (parts: readonly object[], more: object = {}): string =>
        frame({
          candidates: [{ content: { role: "model", parts }, index: 0, ...more }],
          usageMetadata: usage,
          modelVersion: "gemini",
        });
      const sign = (): string => {
        const signature = randomUUID();
        signed.add(signature);
        return signature;
      };
      const finishReason = { stop: "STOP", length: "MAX_TOKENS", filter: "SAFETY" }[end];
      return [
        ...pieces(thought ?? "").map((piece) => chunk([{ text: piece, thought: true }])),
        ...pieces(text).map((piece) => chunk([{ text: piece }])),
        ...calls.map(({ name, args }, index) =>
          chunk([
            {
              functionCall: { name, args: isJsonObject(args) ? (JSON.parse(args) as object) : {} },
              ...(index === 0 ? { thoughtSignature: sign() } : {}),
            },
          ]),
        ),
        chunk([], { finishReason }),
      ];
    },
    refusal: (status) => JSON.stringify({ error: { code: status, message: "Not now", status: "UNAVAILABLE" } }),
  };
}

const usage = { promptTokenCount: 4, candidatesTokenCount: 9, totalTokenCount: 13 };

function* problemsOf(body: Body, signed: ReadonlySet<unknown>): Generator<string> {
  const contents = listAt(body, "contents");
  if (contents[0]?.["role"] !== "user") yield "the first content is not the user's";
  let due: readonly unknown[] = [];
  for (const [index, content] of contents.entries()) {
    const where = `content ${index}`;
    const { role } = content;
    if (role !== "user" && role !== "model") yield `${where} has the role ${String(role)}`;
    const parts = listAt(content, "parts");
    if (parts.length === 0) yield `${where} is empty`;
    if (parts.some(({ text }) => text === "")) yield `${where} has an empty text`;
    const named = (key: string): readonly unknown[] =>
      parts.flatMap((part) => (part[key] === undefined ? [] : [objectOf(part[key])["name"]]));
    const answers = named("functionResponse");
    if (due.join() !== answers.join()) yield `${where} answers [${answers.join()}] where [${due.join()}] are due`;
    due = named("functionCall");
    if (due.length > 0 && contents[index - 1]?.["role"] !== "user")
      yield `${where} calls without a turn of the user before it`;
    const calls = parts.filter(({ functionCall }) => functionCall !== undefined);
    const signature = calls[0]?.["thoughtSignature"];
    if (calls.length > 0 && signature !== unsigned && !signed.has(signature))
      yield `${where} has a call without a signature of its own`;
  }
  if (due.length > 0) yield `the calls of ${due.join()} have no answer`;
}
