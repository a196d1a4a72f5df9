/** Google's generateContent format, with the checks of its server. */
import { randomUUID } from "node:crypto";
import {
  type Body,
  createFrame,
  getList,
  isJsonObject,
  splitText,
  toObject,
  type WireFormat,
  type WireSession,
} from "./wire-format.ts";

/** Placeholder sent by clients without a signature. */
const signaturePlaceholder = "skip_thought_signature_validator";

export const googleFormat: WireFormat = { open };

function open(): WireSession {
  const signed = new Set<unknown>();
  return {
    findProblems: (body) => [...findProblems(body, signed)],
    createFrames: ({ thought, text, calls, end }) => {
      const createChunk = (parts: readonly object[], more: object = {}): string =>
        createFrame({
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
        ...splitText(thought ?? "").map((piece) => createChunk([{ text: piece, thought: true }])),
        ...splitText(text).map((piece) => createChunk([{ text: piece }])),
        ...calls.map(({ name, args }, index) =>
          createChunk([
            {
              functionCall: { name, args: isJsonObject(args) ? (JSON.parse(args) as object) : {} },
              ...(index === 0 ? { thoughtSignature: sign() } : {}),
            },
          ]),
        ),
        createChunk([], { finishReason }),
      ];
    },
    createErrorBody: (status) => JSON.stringify({ error: { code: status, message: "Not now", status: "UNAVAILABLE" } }),
  };
}

const usage = { promptTokenCount: 4, candidatesTokenCount: 9, totalTokenCount: 13 };

function* findProblems(body: Body, signed: ReadonlySet<unknown>): Generator<string> {
  const contents = getList(body, "contents");
  if (contents[0]?.["role"] !== "user") yield "expected the first content to have the role user";
  let pendingNames: readonly unknown[] = [];
  for (const [index, content] of contents.entries()) {
    const label = `content ${index}`;
    const { role } = content;
    if (role !== "user" && role !== "model") yield `${label} has the invalid role ${String(role)}`;
    const parts = getList(content, "parts");
    if (parts.length === 0) yield `${label} is empty`;
    if (parts.some(({ text }) => text === "")) yield `${label} has an empty text`;
    const listNames = (key: string): readonly unknown[] =>
      parts.flatMap((part) => (part[key] === undefined ? [] : [toObject(part[key])["name"]]));
    const resultNames = listNames("functionResponse");
    if (pendingNames.join() !== resultNames.join())
      yield `${label} has results of [${resultNames.join()}], expected [${pendingNames.join()}]`;
    pendingNames = listNames("functionCall");
    if (pendingNames.length > 0 && contents[index - 1]?.["role"] !== "user")
      yield `${label} has calls without a user content before`;
    const calls = parts.filter(({ functionCall }) => functionCall !== undefined);
    const signature = calls[0]?.["thoughtSignature"];
    if (calls.length > 0 && signature !== signaturePlaceholder && !signed.has(signature))
      yield `${label} has a call without a valid signature`;
  }
  if (pendingNames.length > 0) yield `the calls of ${pendingNames.join()} have no result`;
}
