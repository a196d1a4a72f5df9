/** What every pack of tools must do: run each test against a pack of your own. */
import {
  type ContentBlock,
  type JsonObject,
  lintTool,
  type Tool,
  type ToolMessage,
  type ToolRegistry,
  toolRegistry,
} from "@statewright/core";
import { holds, same } from "./assert.ts";
import { converse, type PackRun, type PackWorld, wordsIn } from "./tool-run.ts";

/** Calls of one tool, as arguments that a model may send. */
export interface ToolSamples {
  /** A call that succeeds. It is made several times. */
  readonly good: JsonObject;
  /** A call that fits the schema and fails. */
  readonly failing?: JsonObject;
  /** A call that gives an image. */
  readonly image?: JsonObject;
  /** A call that goes on for longer than a second, and would not end by itself: it shows an update with details, and stops. */
  readonly long?: JsonObject;
}

/** Tools, and what they need to run. */
export interface ToolPack extends PackWorld {
  /** The tools, made anew. */
  readonly tools: readonly Tool<never, never>[];
  /** Calls by the name of their tool; each tool has some. */
  readonly samples: Readonly<Record<string, ToolSamples>>;
  /** Remove what the calls have left. */
  readonly dispose?: () => void | Promise<void>;
}

/** One test of the suite: throws when a tool of the pack does not do what `name` says. */
export interface ToolTest {
  readonly name: string;
  run(open: () => ToolPack | Promise<ToolPack>): Promise<void>;
}

/** The tests that every pack of tools must pass. */
export const toolConformance: readonly ToolTest[] = [
  toolTest("every tool has sample calls, and every sample a tool", async ({ pack, registry }) => {
    same(Object.keys(pack.samples).sort(), registry.names(), "the tools with samples");
  }),

  toolTest(
    "the schema of every tool is plain JSON of an object, under a name that every provider takes",
    async ({ registry }) => {
      for (const { name, inputSchema } of registry.forModel()) {
        holds(/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/.test(name), `"${name}" is not a name that every provider takes`);
        same(JSON.parse(JSON.stringify(inputSchema)), inputSchema, `the schema of "${name}"`);
        same(inputSchema["type"], "object", `the type at the top of the schema of "${name}"`);
        for (const word of ["anyOf", "oneOf", "allOf", "$schema"])
          holds(
            inputSchema[word] === undefined,
            `the schema of "${name}" has ${word} at the top, which providers refuse`,
          );
      }
    },
  ),

  toolTest("the words of every tool tell a model and a person what it does", async ({ registry }) => {
    const warnings = [...registry.tools().values()].flatMap((tool) => lintTool(tool).map(({ message }) => message));
    same(warnings, [], "the warnings");
  }),

  eachSample("good", "a good call is answered once, under its own id, without an error", async (run, tool, args) => {
    const { answers, failure } = await run([{ tool, args, id: "toolu_01-Ab_9" }]);
    holds(failure === undefined, `the run failed: ${String(failure)}`);
    same(
      answers.map(({ callId, name }) => [callId, name]),
      [["toolu_01-Ab_9", tool]],
      `the answers of "${tool}"`,
    );
    holds(answers[0]?.isError === false, `a good call of "${tool}" failed: ${textOf(answers[0])}`);
    holds((answers[0]?.content ?? []).every(isReadable), `the answer of "${tool}" has a block that no model reads`);
  }),

  eachSample("good", "two calls in one response are both answered, in their order", async (run, tool, args) => {
    const { answers, failure } = await run([
      { tool, args, id: "first" },
      { tool, args, id: "second" },
    ]);
    holds(failure === undefined, `the run failed: ${String(failure)}`);
    same(
      answers.map(({ callId }) => callId),
      ["first", "second"],
      `the answers of "${tool}"`,
    );
  }),

  eachSample(
    "good",
    "arguments that do not fit are answered, and never reach the tool",
    async (run, tool, args, { registry }) => {
      const schema = registry.forModel().find(({ name }) => name === tool)?.inputSchema ?? {};
      for (const [what, bad] of misfits(schema, args)) {
        const { answers, started, failure } = await run([{ tool, args: bad, id: "bad" }]);
        holds(failure === undefined, `the run failed: ${String(failure)}`);
        same(started, [], `calls of "${tool}" that were started with ${what}`);
        same(
          answers.map(({ isError }) => isError),
          [true],
          `the answers of "${tool}" to ${what}`,
        );
      }
    },
  ),

  toolTest("a tool without arguments takes an empty text for none", async ({ registry, run, pack }) => {
    for (const { name, inputSchema } of registry.forModel()) {
      if (Object.keys((inputSchema["properties"] ?? {}) as object).length > 0) continue;
      const { answers } = await run([{ tool: name, args: pack.samples[name]?.good ?? {}, id: "none", raw: "" }]);
      same(
        answers.map(({ isError }) => isError),
        [false],
        `the answers of "${name}"`,
      );
    }
  }),

  eachSample(
    "failing",
    "a call that fails is an error that the model reads, and the run goes on",
    async (run, tool, args) => {
      const { answers, failure } = await run([{ tool, args, id: "fails" }]);
      holds(failure === undefined, `the run failed: ${String(failure)}`);
      same(
        answers.map(({ isError }) => isError),
        [true],
        `the answers of "${tool}"`,
      );
      const said = textOf(answers[0]);
      holds(said.trim() !== "", `the error of "${tool}" says nothing`);
      holds(!/^\s*at .+:\d+:\d+/m.test(said), `the error of "${tool}" has a stack in it: ${said}`);
    },
  ),

  eachSample("image", "an image is a block with its type and its data", async (run, tool, args) => {
    const { answers } = await run([{ tool, args, id: "image" }]);
    const images = (answers[0]?.content ?? []).filter(({ type }) => type === "image");
    holds(images.length > 0, `the answer of "${tool}" has no image: ${textOf(answers[0])}`);
    for (const block of images)
      holds(
        block.type === "image" && /^image\//.test(block.mimeType) && /^[A-Za-z0-9+/]+=*$/.test(block.data ?? ""),
        `an image of "${tool}" is not base64 with a type`,
      );
  }),

  toolTest(
    "what is hidden from the model is in no request: names, values, labels and details",
    async ({ registry, run, pack }) => {
      const { wires, details } = await run(
        registry.names().flatMap((tool, index) => {
          const args = pack.samples[tool]?.good;
          return args === undefined ? [] : [{ tool, args, id: `call_${index}` }];
        }),
      );
      const definitions = JSON.stringify(registry.forModel());
      for (const { name, inject } of registry.describe())
        for (const hidden of Object.keys(inject))
          holds(
            !definitions.includes(JSON.stringify(hidden)),
            `the schema of "${name}" shows its hidden argument "${hidden}"`,
          );
      for (const word of pack.hidden ?? wordsIn([pack.context, pack.secrets]))
        holds(!wires.some((wire) => wire.includes(word)), "a hidden value is in a request");
      for (const word of wordsIn(details))
        holds(
          !wires.some((wire) => wire.includes(word) && !pack.mayRepeat?.(word)),
          `details are in a request: ${word}`,
        );
    },
  ),

  eachSample(
    "long",
    "a call that can run long shows an update with details, and stops on its signal",
    async (run, tool, args) => {
      const { updates, stopped, status } = await run([{ tool, args, id: "long" }], { stopAtUpdate: true });
      holds(updates.length > 0, `"${tool}" showed no update`);
      holds(
        updates.some(({ details }) => details !== undefined),
        `no update of "${tool}" has details`,
      );
      same(status, "cancelled", "how the run ended");
      holds(stopped, `"${tool}" went on after its signal had fired`);
    },
  ),
];

/** An opened pack at work. */
interface AtWork {
  readonly pack: ToolPack;
  readonly registry: ToolRegistry<never, never>;
  readonly run: (
    ...given: Parameters<typeof converse> extends [unknown, unknown, ...infer Rest] ? Rest : never
  ) => Promise<PackRun>;
}

function toolTest(name: string, body: (at: AtWork) => Promise<void>): ToolTest {
  return {
    name,
    run: async (open) => {
      const pack = await open();
      const registry = toolRegistry<never, never>(pack.tools, { names: "provider-safe" });
      try {
        await body({ pack, registry, run: (calls, options) => converse(pack, registry, calls, options) });
      } finally {
        await pack.dispose?.();
      }
    },
  };
}

function eachSample(
  kind: keyof ToolSamples,
  name: string,
  body: (run: AtWork["run"], tool: string, args: JsonObject, at: AtWork) => Promise<void>,
): ToolTest {
  return toolTest(name, async (at) => {
    for (const [tool, samples] of Object.entries(at.pack.samples)) {
      const args = samples[kind];
      if (args !== undefined) await body(at.run, tool, args, at);
    }
  });
}

/** Arguments with one mistake each: a key that nobody knows, a value of another type, a required one left out. */
function misfits(schema: JsonObject, good: JsonObject): readonly (readonly [what: string, args: JsonObject])[] {
  const properties = (schema["properties"] ?? {}) as Readonly<Record<string, JsonObject>>;
  const wrong = Object.entries(properties).flatMap(([name, { type }]) => {
    if (typeof type !== "string") return [];
    const value = type === "object" ? [] : type === "array" ? {} : { not: type };
    return [[`another type in "${name}"`, { ...good, [name]: value }] as const];
  });
  const required = (schema["required"] ?? []) as readonly string[];
  const missing = required.map((name) => {
    const { [name]: _left, ...rest } = good;
    return [`"${name}" left out`, rest] as const;
  });
  const isOpen = schema["additionalProperties"] !== undefined && schema["additionalProperties"] !== false;
  return [
    ...wrong,
    ...missing,
    ...(isOpen
      ? []
      : [
          [
            `a key that nobody knows, which "additionalProperties": false refuses`,
            { ...good, no_such_key: 1 },
          ] as const,
        ]),
  ];
}

function isReadable(block: ContentBlock): boolean {
  return ["text", "json", "image", "file", "artifact"].includes(block.type);
}

function textOf(answer: ToolMessage | undefined): string {
  return (answer?.content ?? []).map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join(" ");
}
