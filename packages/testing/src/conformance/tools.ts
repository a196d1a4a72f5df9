/** Tool conformance suite: tests of every tool pack, to run against custom tools. */
import {
  type ContentBlock,
  type JsonObject,
  type Tool,
  type ToolMessage,
  type ToolRegistry,
  toolRegistry,
} from "@statewright/core";
import { lintTool } from "@statewright/core/inspect";
import { assertEqual, assertTrue } from "./assert.ts";
import { listTexts, type PackRun, type PackWorld, runToolCalls } from "./tool-run.ts";

/** Sample arguments of a tool. */
export interface ToolSamples {
  /** Arguments of a successful call. The call is made several times. */
  readonly good: JsonObject;
  /** Arguments that match the schema and make the call fail. */
  readonly failing?: JsonObject;
  /** Arguments of a call whose result contains an image. */
  readonly image?: JsonObject;
  /**
   * Arguments of a call that runs longer than a second without an end of its own, emits an update with details, and
   * stops on its abort signal.
   */
  readonly long?: JsonObject;
}

/** Tools under test with their samples and dependencies. */
export interface ToolPack extends PackWorld {
  /** Fresh tools for a single test. */
  readonly tools: readonly Tool<never, never>[];
  /** Samples by tool name. Every tool needs an entry. */
  readonly samples: Readonly<Record<string, ToolSamples>>;
  /** Removes files and other data created by the calls. */
  readonly dispose?: () => void | Promise<void>;
}

/** A test of the suite. `run` throws when a tool of the pack violates `name`. */
export interface ToolTest {
  readonly name: string;
  /** Runs the test with fresh instances from `open`. Rejects when the test fails. */
  run(open: () => ToolPack | Promise<ToolPack>): Promise<void>;
}

/** Tests for every tool pack. */
export const toolConformance: readonly ToolTest[] = [
  defineToolTest("every tool has sample calls, and every sample belongs to a tool", async ({ pack, registry }) => {
    assertEqual(Object.keys(pack.samples).sort(), registry.names(), "the names of the tools with samples");
  }),

  defineToolTest(
    "the input schema of every tool is plain JSON of type object, and every provider accepts the tool name",
    async ({ registry }) => {
      for (const { name, inputSchema } of registry.forModel()) {
        assertTrue(
          /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/.test(name),
          `expected a tool name that every provider accepts (a letter or "_", then up to 63 letters, digits, "_" or "-"), got "${name}"`,
        );
        assertEqual(JSON.parse(JSON.stringify(inputSchema)), inputSchema, `the input schema of "${name}"`);
        assertEqual(inputSchema["type"], "object", `the top-level type of the input schema of "${name}"`);
        for (const word of ["anyOf", "oneOf", "allOf", "$schema"])
          assertTrue(
            inputSchema[word] === undefined,
            `the input schema of "${name}" has ${word} at the top level, which providers refuse`,
          );
      }
    },
  ),

  defineToolTest("the description of every tool explains the tool to a model and to a person", async ({ registry }) => {
    const warnings = [...registry.tools().values()].flatMap((tool) => lintTool(tool).map(({ message }) => message));
    assertEqual(warnings, [], "the warnings");
  }),

  defineSampleTest(
    "good",
    "a valid call of each tool returns one result with its own call id and without an error",
    async (run, tool, args) => {
      const { answers, failure } = await run([{ tool, args, id: "toolu_01-Ab_9" }]);
      assertTrue(failure === undefined, `the run failed: ${String(failure)}`);
      assertEqual(
        answers.map(({ callId, name }) => [callId, name]),
        [["toolu_01-Ab_9", tool]],
        `the results of "${tool}"`,
      );
      assertTrue(answers[0]?.isError === false, `a valid call of "${tool}" failed: ${getResultText(answers[0])}`);
      assertTrue(
        (answers[0]?.content ?? []).every(isReadable),
        `the result of "${tool}" contains a block of a type that models cannot read`,
      );
    },
  ),

  defineSampleTest(
    "good",
    "two calls of a tool in one response both return a result, in their order",
    async (run, tool, args) => {
      const { answers, failure } = await run([
        { tool, args, id: "first" },
        { tool, args, id: "second" },
      ]);
      assertTrue(failure === undefined, `the run failed: ${String(failure)}`);
      assertEqual(
        answers.map(({ callId }) => callId),
        ["first", "second"],
        `the results of "${tool}"`,
      );
    },
  ),

  defineSampleTest(
    "good",
    "invalid arguments return an error result and never reach the tool",
    async (run, tool, args, { pack, registry }) => {
      const schema = registry.forModel().find(({ name }) => name === tool)?.inputSchema ?? {};
      const input = pack.tools.find(({ spec }) => spec.name === tool)?.spec.input;
      // A JSON Schema decides itself about unknown keys; core refuses those that another schema does not declare.
      const refusesUnknown = input !== undefined && !("jsonSchema" in input);
      for (const [what, bad] of createInvalidArgs(schema, args, { refusesUnknown })) {
        const { answers, started, failure } = await run([{ tool, args: bad, id: "bad" }]);
        assertTrue(failure === undefined, `the run failed: ${String(failure)}`);
        assertEqual(started, [], `started calls of "${tool}" with ${what}`);
        assertEqual(
          answers.map(({ isError }) => isError),
          [true],
          `the results of "${tool}" for ${what}`,
        );
      }
    },
  ),

  defineToolTest("a tool without parameters accepts an empty argument text", async ({ registry, run, pack }) => {
    for (const { name, inputSchema } of registry.forModel()) {
      if (Object.keys((inputSchema["properties"] ?? {}) as object).length > 0) continue;
      const { answers } = await run([{ tool: name, args: pack.samples[name]?.good ?? {}, id: "none", raw: "" }]);
      assertEqual(
        answers.map(({ isError }) => isError),
        [false],
        `the results of "${name}"`,
      );
    }
  }),

  defineSampleTest(
    "failing",
    "a failing tool call returns an error result to the model, and the run continues",
    async (run, tool, args) => {
      const { answers, failure } = await run([{ tool, args, id: "fails" }]);
      assertTrue(failure === undefined, `the run failed: ${String(failure)}`);
      assertEqual(
        answers.map(({ isError }) => isError),
        [true],
        `the results of "${tool}"`,
      );
      const errorText = getResultText(answers[0]);
      assertTrue(errorText.trim() !== "", `the error result of "${tool}" has no text`);
      assertTrue(
        !/^\s*at .+:\d+:\d+/m.test(errorText),
        `the error result of "${tool}" contains a stack trace: ${errorText}`,
      );
    },
  ),

  defineSampleTest(
    "image",
    "an image in a tool result is an image block with a media type and base64 data",
    async (run, tool, args) => {
      const { answers } = await run([{ tool, args, id: "image" }]);
      const images = (answers[0]?.content ?? []).filter(({ type }) => type === "image");
      assertTrue(images.length > 0, `the result of "${tool}" has no image: ${getResultText(answers[0])}`);
      for (const block of images)
        assertTrue(
          block.type === "image" && /^image\//.test(block.mimeType) && /^[A-Za-z0-9+/]+=*$/.test(block.data ?? ""),
          `an image of "${tool}" has no image media type or no base64 data`,
        );
    },
  ),

  defineToolTest(
    "hidden argument names, hidden values and result details appear in no model request",
    async ({ registry, run, pack }) => {
      const { requests, details } = await run(
        registry.names().flatMap((tool, index) => {
          const args = pack.samples[tool]?.good;
          return args === undefined ? [] : [{ tool, args, id: `call_${index}` }];
        }),
      );
      const definitions = JSON.stringify(registry.forModel());
      for (const { name, inject } of registry.describe())
        for (const hidden of Object.keys(inject))
          assertTrue(
            !definitions.includes(JSON.stringify(hidden)),
            `the input schema of "${name}" contains its hidden argument "${hidden}"`,
          );
      for (const word of pack.hidden ?? listTexts([pack.context, pack.secrets]))
        assertTrue(!requests.some((wire) => wire.includes(word)), "a hidden value appears in a model request");
      for (const word of listTexts(details))
        assertTrue(
          !requests.some((wire) => wire.includes(word) && !pack.mayRepeat?.(word)),
          `tool result details appear in a model request: ${word}`,
        );
    },
  ),

  defineSampleTest(
    "long",
    "a long-running tool call emits an update with details and stops on its abort signal",
    async (run, tool, args) => {
      const { updates, stopped, status } = await run([{ tool, args, id: "long" }], { stopAtUpdate: true });
      assertTrue(updates.length > 0, `"${tool}" emitted no update`);
      assertTrue(
        updates.some(({ details }) => details !== undefined),
        `no update of "${tool}" has details`,
      );
      assertEqual(status, "cancelled", "the status of the run");
      assertTrue(stopped, `"${tool}" continued after its abort signal`);
    },
  ),
];

/** An opened tool pack with its registry. */
interface OpenedPack {
  readonly pack: ToolPack;
  readonly registry: ToolRegistry<never, never>;
  readonly run: (
    ...callArgs: Parameters<typeof runToolCalls> extends [unknown, unknown, ...infer Rest] ? Rest : never
  ) => Promise<PackRun>;
}

function defineToolTest(name: string, body: (opened: OpenedPack) => Promise<void>): ToolTest {
  return {
    name,
    run: async (open) => {
      const pack = await open();
      const registry = toolRegistry<never, never>(pack.tools, { names: "provider-safe" });
      try {
        await body({ pack, registry, run: (calls, options) => runToolCalls(pack, registry, calls, options) });
      } finally {
        await pack.dispose?.();
      }
    },
  };
}

function defineSampleTest(
  kind: keyof ToolSamples,
  name: string,
  body: (run: OpenedPack["run"], tool: string, args: JsonObject, opened: OpenedPack) => Promise<void>,
): ToolTest {
  return defineToolTest(name, async (at) => {
    for (const [tool, samples] of Object.entries(at.pack.samples)) {
      const args = samples[kind];
      if (args !== undefined) await body(at.run, tool, args, at);
    }
  });
}

/**
 * Creates argument sets with a single mistake each: an unknown key, a value of a wrong type, or a missing required key.
 */
function createInvalidArgs(
  schema: JsonObject,
  good: JsonObject,
  { refusesUnknown }: { readonly refusesUnknown: boolean },
): readonly (readonly [what: string, args: JsonObject])[] {
  const properties = (schema["properties"] ?? {}) as Readonly<Record<string, JsonObject>>;
  const wrong = Object.entries(properties).flatMap(([name, { type }]) => {
    if (typeof type !== "string") return [];
    const value = type === "object" ? [] : type === "array" ? {} : { not: type };
    return [[`a value of a wrong type for "${name}"`, { ...good, [name]: value }] as const];
  });
  const required = (schema["required"] ?? []) as readonly string[];
  const missing = required.map((name) => {
    const { [name]: _left, ...rest } = good;
    return [`"${name}" left out`, rest] as const;
  });
  const { additionalProperties = !refusesUnknown } = schema;
  return [
    ...wrong,
    ...missing,
    ...(additionalProperties === false ? [["an undeclared key", { ...good, no_such_key: 1 }] as const] : []),
  ];
}

function isReadable(block: ContentBlock): boolean {
  return ["text", "json", "image", "file", "artifact"].includes(block.type);
}

function getResultText(answer: ToolMessage | undefined): string {
  return (answer?.content ?? []).map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join(" ");
}
