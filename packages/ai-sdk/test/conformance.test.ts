import type { LanguageModelV2StreamPart, LanguageModelV3StreamPart, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type { ModelReply } from "@statewright/core";
import { modelConformance, type OpenModel } from "@statewright/testing/conformance";
import { test } from "vitest";
import { aiModel } from "../src/index.ts";
import { createModelV2, createModelV3, createModelV4, finish, finishV2 } from "./support/language-models.ts";

type AnyPart = LanguageModelV2StreamPart & LanguageModelV3StreamPart & LanguageModelV4StreamPart;

/** Stream parts of a reply: texts and arguments in chunks. */
function listParts([answer]: readonly ModelReply[]): AnyPart[] {
  const parts = (answer?.content ?? []).flatMap((block, index): unknown[] => {
    const id = `${index}`;
    if (block.type === "text")
      return [
        { type: "text-start", id },
        { type: "text-delta", id, delta: block.text },
        { type: "text-end", id },
      ];
    if (block.type !== "call") return [];
    const input = JSON.stringify(block.args);
    const pieces = input.match(/.{1,7}/gsu) ?? [];
    return [
      { type: "tool-input-start", id: block.id, toolName: block.name },
      ...pieces.map((delta) => ({ type: "tool-input-delta", id: block.id, delta })),
      { type: "tool-input-end", id: block.id },
      { type: "tool-call", toolCallId: block.id, toolName: block.name, input },
    ];
  });
  return [{ type: "stream-start", warnings: [] }, ...parts] as AnyPart[];
}

function opened(made: { readonly model: Parameters<typeof aiModel>[0]; readonly asked: readonly unknown[] }) {
  return { model: aiModel(made.model), listRequests: () => made.asked.map((asked) => JSON.stringify(asked)) };
}

const v4: OpenModel = (answers) => opened(createModelV4([...listParts(answers), finish()]));
const v3: OpenModel = (answers) => opened(createModelV3([...listParts(answers), finish()]));
const v2: OpenModel = (answers) => opened(createModelV2([...listParts(answers), finishV2()]));

test.each(modelConformance)("the adapter over a model of V4: $name [S1.88]", ({ run }) => run(v4));
test.each(modelConformance)("the adapter over a model of V3: $name [S1.88]", ({ run }) => run(v3));
test.each(modelConformance)("the adapter over a model of V2: $name [S1.88]", ({ run }) => run(v2));
