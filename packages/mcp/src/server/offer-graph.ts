/** Graphs and agents as MCP tools: arguments, description, and the interrupts that a host may answer. */
import {
  type ArgsOf,
  type Graph,
  type GraphTypes,
  type JsonObject,
  type Message,
  StatewrightError,
  type ToolInput,
  type ToolSafety,
  type ToolSpec,
} from "@statewright/core";
import {
  checkChoice,
  checkOptions,
  invalidOption,
  listOptionNames,
  toJsonSchema,
  toModelTool,
  toolSpec,
  toSnakeCase,
} from "@statewright/core/adapter";
import type { PerCaller } from "./caller.ts";

/** Interrupts that the host's model may answer by a tool call, not by a form for a person. */
export type HostAnswerPolicy = "except-approvals" | "all" | "none";

/** Options of {@link offerGraph}. */
export type OfferGraphOptions<Types extends GraphTypes, Input extends ToolInput> = {
  /** Description for the host's model: purpose of the graph, and when to call it. */
  readonly description: string;
  /** Tool name. Default: the graph's name in snake case; at most 40 characters. */
  readonly name?: string;
  /** Display name of the offered tool. */
  readonly label?: string;
  /** Safety metadata of the offered tool. */
  readonly safety?: Omit<ToolSafety, "access" | "redact" | "confirm" | "roots"> & {
    readonly access?: ToolSafety["access"];
  };
  /** Schema of the arguments. Default: the input of the graph; for an agent `{ message }`. */
  readonly input?: Input;
  /** Converts the arguments to the graph's input. Required for an `input` that differs from the graph's input. */
  readonly toInput?: (args: ArgsOf<Input>) => Types["input"];
  /**
   * `except-approvals`, the default: all interrupts except approvals of tool calls and tool calls in doubt. `all`: all
   * interrupts. `none`: people only, by forms or at the host of this server.
   */
  readonly hostAnswers?: HostAnswerPolicy;
} & (unknown extends Types["given"]
  ? { readonly context?: PerCaller<unknown> }
  : { readonly context: PerCaller<Types["given"]> });

/** Graph served to MCP hosts, created by `offerGraph`. */
export interface OfferedGraph {
  readonly name: string;
  readonly graph: Graph;
  readonly spec: ToolSpec;
  /** JSON Schema of the arguments, without `thread`. */
  readonly input: JsonObject;
  /** Converts arguments to the graph's input. Throws `invalid_input`. */
  readonly toInput: (args: Readonly<Record<string, unknown>>) => unknown;
  readonly context: PerCaller<unknown>;
  readonly hostAnswers: HostAnswerPolicy;
}

const knownOptions = listOptionNames<OfferGraphOptions<GraphTypes, ToolInput>>({
  description: true,
  name: true,
  label: true,
  safety: true,
  input: true,
  toInput: true,
  context: true,
  hostAnswers: true,
});

/**
 * Offers a graph or an agent to MCP hosts. Throws `invalid_option` for an input without JSON Schema and for an
 * argument named `thread`, and `invalid_tool` for an invalid name or description.
 */
export function offerGraph<Types extends GraphTypes, Input extends ToolInput = ToolInput>(
  graph: Graph<Types>,
  options: OfferGraphOptions<Types, Input>,
): OfferedGraph {
  checkOptions("offerGraph", options, knownOptions);
  const { description, label, safety, hostAnswers = "except-approvals" } = options;
  const name = options.name ?? toSnakeCase(graph.name);
  if (name.length > 40)
    throw invalidOption({
      where: `offerGraph "${name}"`,
      option: "name",
      expected: "at most 40 characters",
      found: `${name.length} characters`,
      fix: "Pass a shorter name: name: …",
    });
  checkChoice(`offerGraph "${name}"`, { hostAnswers }, ["except-approvals", "all", "none"]);
  const input = options.input ?? getInputSchema(name, graph as Graph);
  const spec = toolSpec({
    name,
    description,
    input,
    ...(label === undefined ? {} : { label }),
    ...(safety === undefined ? {} : { safety }),
  });
  const inputSchema = toModelTool(spec).inputSchema;
  if (Object.hasOwn((inputSchema["properties"] ?? {}) as object, "thread"))
    throw invalidOption({
      where: `offerGraph "${name}"`,
      expected: "arguments with other names than `thread`, which is reserved for thread names",
      found: "an argument `thread`",
      fix: "Rename the argument by the options input and toInput",
    });
  const toInput =
    options.toInput ?? (isMessageGraph(graph) && options.input === undefined ? createMessageInput(graph) : returnArgs);
  return Object.freeze({
    name,
    graph: graph as Graph,
    spec,
    input: inputSchema,
    toInput: (args: Readonly<Record<string, unknown>>) => toInput(parseArgs(name, input, args) as never),
    context: (options as { readonly context?: PerCaller<unknown> }).context,
    hostAnswers,
  });
}

/** Agent: a graph with message input. */
interface MessageGraph {
  readonly toInput: (message: string) => { readonly messages: readonly Message[] };
}

function isMessageGraph(graph: object): graph is MessageGraph {
  return "toInput" in graph && typeof graph.toInput === "function";
}

function createMessageInput(agent: MessageGraph): (args: { readonly message: string }) => unknown {
  return ({ message }) => agent.toInput(message);
}

function returnArgs(args: unknown): unknown {
  return args;
}

/** Returns the input schema of a graph: a message for an agent, the declared input schema, or the channels. */
function getInputSchema(name: string, graph: Graph): ToolInput {
  if (isMessageGraph(graph)) return messageInput;
  if (graph.input !== undefined) return graph.input;
  const properties: Record<string, JsonObject> = {};
  const required: string[] = [];
  for (const [channel, { kind, schema, initial }] of Object.entries(graph.state.channels)) {
    if (graph.private.has(channel) || kind === "messages" || kind === "untracked") continue;
    const itemSchema = schema === undefined ? undefined : toJsonSchema(schema);
    if (itemSchema === undefined || JSON.stringify(itemSchema).includes('"$ref"'))
      throw invalidOption({
        where: `offerGraph "${name}"`,
        expected: `a self-contained JSON Schema of the channel "${channel}"`,
        found: itemSchema === undefined ? "none" : "a schema with references",
        fix: "Add the input of the graph: input: z.object({ … })",
      });
    properties[channel] =
      kind === "list"
        ? { type: "array", items: itemSchema }
        : kind === "record"
          ? { type: "object", additionalProperties: itemSchema }
          : itemSchema;
    if (kind !== "ephemeral" && initial() === undefined) required.push(channel);
  }
  return {
    jsonSchema: { type: "object", properties, required, additionalProperties: false },
    // The run validates the values of the channels. Hosts cannot pass a messages channel, which contains tool calls.
    validate: (args) =>
      Object.keys(args as object)
        .filter((channel) => !Object.hasOwn(properties, channel))
        .map((path) => ({ path, message: "is not an input of the graph" })),
  };
}

const messageInput: ToolInput = {
  jsonSchema: {
    type: "object",
    properties: {
      message: { type: "string", minLength: 1, description: "Message for the agent, with all necessary information." },
    },
    required: ["message"],
    additionalProperties: false,
  },
  validate: (args) => {
    const { message } = args as { readonly message?: unknown };
    return typeof message === "string" && message.trim() !== ""
      ? []
      : [{ path: "message", message: "expected a text" }];
  },
};

function parseArgs(name: string, input: ToolInput, args: Readonly<Record<string, unknown>>): unknown {
  if ("jsonSchema" in input) {
    const issues = input.validate(args);
    if (issues.length === 0) return args;
    throw createArgsError(name, issues.map(({ path, message }) => `${path}: ${message}`).join("; "));
  }
  const result = input["~standard"].validate(args);
  if (result instanceof Promise)
    throw invalidOption({
      where: `offerGraph "${name}"`,
      option: "input",
      expected: "a synchronous schema",
      found: "an asynchronous schema",
      fix: "Use a synchronous schema",
    });
  if (result.issues === undefined) return result.value;
  throw createArgsError(name, result.issues.map(({ message }) => message).join("; "));
}

function createArgsError(name: string, reason: string): StatewrightError {
  return new StatewrightError("invalid_input", {
    what: `invalid arguments of "${name}": ${reason.slice(0, 2_000)}`,
    next: "Pass arguments that match the schema",
  });
}
