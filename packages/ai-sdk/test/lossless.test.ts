/** Random conversations through a model and back: provider parts return unchanged, in every specification. */
import type { LanguageModelV2StreamPart, LanguageModelV3StreamPart, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type { ContentBlock, Json, JsonObject, Message, Model, ModelReply, UserMessage } from "@statewright/core";
import { getBlockText } from "@statewright/core/adapter";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { aiModel } from "../src/index.ts";
import { createModelV2, createModelV3, createModelV4, finish, finishV2 } from "./support/language-models.ts";
import { createCallOptions } from "./support/requests.ts";

type Spec = "v2" | "v3" | "v4";

/** Part of a reply: its stream parts, and the part expected in the next prompt. */
interface RoundTripPart {
  readonly stream: readonly object[];
  readonly back: readonly object[];
  /** Tool call of the part, which needs an answer. */
  readonly call?: { readonly id: string; readonly name: string; readonly approval?: string };
}

const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 });
const json = fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.parse(JSON.stringify(value)) as Json);
const object = fc.dictionary(
  fc.string({ minLength: 1, maxLength: 5 }).filter((key) => key !== "__proto__"),
  json,
  { maxKeys: 3 },
);
const metadata = fc.option(
  object.map((fields) => ({ made: fields, other: { kept: true } })),
  { nil: undefined },
);
const bytes = fc.uint8Array({ minLength: 1, maxLength: 20 }).map((array) => Buffer.from(array).toString("base64"));

const options = (provider: JsonObject | undefined) => (provider === undefined ? {} : { providerOptions: provider });
const toProviderMetadata = (provider: JsonObject | undefined) =>
  provider === undefined ? {} : { providerMetadata: provider };

function inPieces(
  type: "text" | "reasoning",
  id: string,
  whole: string,
  provider: JsonObject | undefined,
): readonly object[] {
  const half = Math.floor(whole.length / 2);
  return [
    { type: `${type}-start`, id },
    { type: `${type}-delta`, id, delta: whole.slice(0, half) },
    { type: `${type}-delta`, id, delta: whole.slice(half) },
    { type: `${type}-end`, id, ...toProviderMetadata(provider) },
  ];
}

function createReplyParts(type: "text" | "reasoning") {
  return fc.tuple(text, metadata).map(
    ([said, provider]) =>
      (id: string): RoundTripPart => ({
        stream: inPieces(type, id, said, provider),
        back: [{ type, text: said, ...options(provider) }],
      }),
  );
}

const called = fc.tuple(fc.constantFrom("look", "order"), object, metadata).map(
  ([name, input, provider]) =>
    (id: string): RoundTripPart => ({
      stream: [
        { type: "tool-input-start", id, toolName: name },
        { type: "tool-input-delta", id, delta: JSON.stringify(input) },
        { type: "tool-input-end", id },
        {
          type: "tool-call",
          toolCallId: id,
          toolName: name,
          input: JSON.stringify(input),
          ...toProviderMetadata(provider),
        },
      ],
      back: [{ type: "tool-call", toolCallId: id, toolName: name, input, ...options(provider) }],
      call: { id, name },
    }),
);

const ranByProvider = fc
  .tuple(object, json, metadata, fc.boolean())
  .map(([input, given, provider, isError]) => (id: string): RoundTripPart => {
    const result = given ?? "nothing";
    const name = "web_search";
    const kind = `${isError ? "error-" : ""}${typeof result === "string" ? "text" : "json"}`;
    return {
      stream: [
        {
          type: "tool-call",
          toolCallId: id,
          toolName: name,
          input: JSON.stringify(input),
          providerExecuted: true,
          ...toProviderMetadata(provider),
        },
        {
          type: "tool-result",
          toolCallId: id,
          toolName: name,
          result,
          ...(isError ? { isError } : {}),
          ...toProviderMetadata(provider),
        },
        { type: "source", sourceType: "url", id, url: "https://a.example" },
      ],
      back: [
        { type: "tool-call", toolCallId: id, toolName: name, input, providerExecuted: true, ...options(provider) },
        {
          type: "tool-result",
          toolCallId: id,
          toolName: name,
          output: { type: kind, value: result },
          ...options(provider),
        },
      ],
    };
  });

/** A provider-executed call with an approval request. */
const askedAbout = fc.tuple(object, metadata).map(
  ([input, provider]) =>
    (id: string): RoundTripPart => ({
      stream: [
        {
          type: "tool-call",
          toolCallId: id,
          toolName: "mcp.search",
          input: JSON.stringify(input),
          providerExecuted: true,
          dynamic: true,
          ...toProviderMetadata(provider),
        },
        { type: "tool-approval-request", approvalId: `approval_${id}`, toolCallId: id },
      ],
      back: [
        {
          type: "tool-call",
          toolCallId: id,
          toolName: "mcp.search",
          input,
          providerExecuted: true,
          ...options(provider),
        },
      ],
      call: { id, name: "mcp.search", approval: `approval_${id}` },
    }),
);

const buildParts = (spec: Spec) =>
  fc.tuple(bytes, metadata).map(
    ([data, provider]) =>
      (): RoundTripPart => ({
        stream: [
          {
            type: "file",
            mediaType: "image/png",
            data: spec === "v4" ? { type: "data", data } : data,
            ...toProviderMetadata(provider),
          },
        ],
        back: [
          {
            type: "file",
            mediaType: "image/png",
            data: spec === "v4" ? { type: "data", data } : data,
            ...options(provider),
          },
        ],
      }),
  );

const ofV4 = fc.tuple(bytes, metadata).map(
  ([data, provider]) =>
    (): RoundTripPart => ({
      stream: [
        { type: "custom", kind: "made.compaction", ...toProviderMetadata(provider) },
        {
          type: "reasoning-file",
          mediaType: "image/png",
          data: { type: "data", data },
          ...toProviderMetadata(provider),
        },
        { type: "file", mediaType: "image/png", data: { type: "url", url: new URL("https://files.example/1.png") } },
        { type: "file", mediaType: "application/pdf", data: { type: "reference", reference: { made: "file-9" } } },
      ],
      back: [
        { type: "custom", kind: "made.compaction", ...options(provider) },
        { type: "reasoning-file", mediaType: "image/png", data: { type: "data", data }, ...options(provider) },
        { type: "file", mediaType: "image/png", data: { type: "url", url: new URL("https://files.example/1.png") } },
        { type: "file", mediaType: "application/pdf", data: { type: "reference", reference: { made: "file-9" } } },
      ],
    }),
);

/** A block of a user or tool message, and the prompt part expected for it. */
function buildPromptPart(spec: Spec) {
  const data = (given: string) => (spec === "v4" ? { type: "data", data: given } : given);
  const address = new URL("https://a.example/1.png");
  const uploaded = fc.tuple(text, metadata).map(([id, provider]) => ({
    block: {
      type: "file" as const,
      mimeType: "application/pdf",
      uploaded: { made: id, other: "x" },
      ...(provider && { provider }),
    },
    part: {
      type: "file",
      mediaType: "application/pdf",
      data: { type: "reference", reference: { made: id, other: "x" } },
      ...options(provider),
    },
  }));
  return fc.oneof(
    ...(spec === "v4" ? [uploaded] : []),
    fc.tuple(text, metadata).map(([said, provider]) => ({
      block: { type: "text" as const, text: said, ...(provider && { provider }) },
      part: { type: "text", text: said, ...options(provider) },
    })),
    fc.tuple(bytes, metadata).map(([given, provider]) => ({
      block: { type: "image" as const, mimeType: "image/png", data: given, ...(provider && { provider }) },
      part: { type: "file", mediaType: "image/png", data: data(given), ...options(provider) },
    })),
    bytes.map((given) => ({
      block: { type: "file" as const, mimeType: "text/csv", data: given, name: "a.csv" },
      part: { type: "file", mediaType: "text/csv", data: data(given), filename: "a.csv" },
    })),
    fc.constant({
      block: { type: "image" as const, mimeType: "image/png", url: String(address) },
      part: { type: "file", mediaType: "image/png", data: spec === "v4" ? { type: "url", url: address } : address },
    }),
  );
}

const answered = (spec: Spec) =>
  fc.oneof(
    text.map((said) => ({
      content: [{ type: "text", text: said }] as ContentBlock[],
      output: { type: "text", value: said },
    })),
    json.map((value) => ({ content: [{ type: "json", value }] as ContentBlock[], output: { type: "json", value } })),
    fc.tuple(text, bytes).map(([said, data]) => ({
      content: [
        { type: "text", text: said },
        { type: "image", mimeType: "image/png", data },
      ] as ContentBlock[],
      output: { type: "content", value: [{ type: "text", text: said }, getImage(spec, data)] },
    })),
  );

function listWords(content: readonly ContentBlock[]): string {
  return content.map((block) => getBlockText(block) ?? "").join("\n");
}

function getImage(spec: Spec, data: string): object {
  if (spec === "v4") return { type: "file", mediaType: "image/png", data: { type: "data", data } };
  return { type: spec === "v3" ? "image-data" : "media", mediaType: "image/png", data };
}

function listTurns(spec: Spec) {
  const part = fc.oneof(
    createReplyParts("text"),
    createReplyParts("reasoning"),
    called,
    ranByProvider,
    buildParts(spec),
    ...(spec === "v4" ? [ofV4] : []),
    ...(spec === "v2" ? [] : [askedAbout]),
  );
  const turn = fc.record({
    person: fc.array(buildPromptPart(spec), { minLength: 1, maxLength: 3 }),
    parts: fc.array(part, { minLength: 1, maxLength: 5 }),
    answer: answered(spec),
    isError: fc.boolean(),
  });
  return fc.array(turn, { minLength: 1, maxLength: 3 });
}

type Parts = LanguageModelV2StreamPart[] & LanguageModelV3StreamPart[] & LanguageModelV4StreamPart[];

function createModelThatStreams(
  spec: Spec,
  stream: readonly object[],
): { readonly model: Model; readonly prompt: () => unknown } {
  const parts = stream as Parts;
  const more = { provider: "made", supportedUrls: { "*": [/^https:/] } };
  if (spec === "v2") {
    const { model, asked } = createModelV2([...parts, finishV2()], more);
    return { model: aiModel(model), prompt: () => asked[0]?.prompt };
  }
  const { model, asked } =
    spec === "v3" ? createModelV3([...parts, finish()], more) : createModelV4([...parts, finish()], more);
  return { model: aiModel(model), prompt: () => asked[0]?.prompt };
}

/** The reply after a save and a load. */
async function savedReply(model: Model, messages: readonly Message[]): Promise<ModelReply> {
  return JSON.parse(JSON.stringify(await model.respond({ messages, tools: [] }, createCallOptions()))) as ModelReply;
}

test.each<Spec>(["v2", "v3", "v4"])(
  "a conversation with a model of %s goes back to it without a loss, however often it was saved",
  async (spec) => {
    await fc.assert(
      fc.asyncProperty(listTurns(spec), async (turns) => {
        const messages: Message[] = [];
        const expected: object[] = [];
        for (const [turn, { person, parts, answer, isError }] of turns.entries()) {
          messages.push({
            role: "user",
            id: `u${turn}`,
            content: person.map(({ block }) => block as UserMessage["content"][number]),
          });
          expected.push({ role: "user", content: person.map(({ part }) => part) });
          const said = parts.map((part, index) => part(`${turn}_${index}`));
          const { model, prompt } = createModelThatStreams(
            spec,
            said.flatMap(({ stream }) => stream),
          );
          const reply = await savedReply(model, messages);
          expect(prompt()).toEqual(expected);
          messages.push({ role: "assistant", id: `a${turn}`, ...reply });
          expected.push({ role: "assistant", content: said.flatMap(({ back }) => back) });
          const calls = said.flatMap(({ call }) => call ?? []);
          if (calls.length === 0) continue;
          const failed = isError && answer.output.type !== "content";
          for (const { id, name } of calls)
            messages.push({ role: "tool", id: `t${id}`, callId: id, name, isError: failed, content: answer.content });
          const output = failed ? { ...answer.output, type: `error-${answer.output.type}` } : answer.output;
          expected.push({
            role: "tool",
            content: calls.map(({ id, name, approval: approvalId }) =>
              approvalId === undefined
                ? { type: "tool-result", toolCallId: id, toolName: name, output }
                : {
                    type: "tool-approval-response",
                    approvalId,
                    approved: !failed,
                    ...(failed ? { reason: listWords(answer.content) } : {}),
                  },
            ),
          });
        }
        const { model, prompt } = createModelThatStreams(spec, []);
        await savedReply(model, messages);
        expect(prompt()).toEqual(expected);
      }),
      { numRuns: 150, seed: 7 },
    );
  },
);
