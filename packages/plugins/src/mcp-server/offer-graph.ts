/** Graphs and agents as they are offered to hosts: what they take, what is said of them, and who may answer what they ask. */
import {
  type ArgsOf,
  checkOptions,
  type Graph,
  type GraphTypes,
  type JsonObject,
  jsonSchemaOf,
  type Message,
  modelToolOf,
  optionNames,
  StatewrightError,
  snakeCaseOf,
  type ToolInput,
  type ToolSafety,
  type ToolSpec,
  toolSpec,
} from "@statewright/core";
import type { PerCaller } from "./caller.ts";

/** Which questions of its runs a host may answer by a call, which is what its model does, and not by a form that a person fills in. */
export type HostMayAnswer = "questions" | "all" | "none";

/** What `offerGraph` takes beside the graph. */
export type OfferGraphOptions<Types extends GraphTypes, Input extends ToolInput> = {
  /** For the model of the host: what it does, and when to call it. */
  readonly description: string;
  /** Default: the graph's name, in small letters with underscores; at most 40 characters. */
  readonly name?: string;
  readonly label?: string;
  readonly safety?: Omit<ToolSafety, "access" | "redact" | "confirm" | "roots"> & {
    readonly access?: ToolSafety["access"];
  };
  /** The arguments. Default: what the graph takes as its input; for an agent `{ message }`. */
  readonly input?: Input;
  /** What the graph is given, made from the arguments; needed with an `input` that is not the graph's own. */
  readonly given?: (args: ArgsOf<Input>) => Types["input"];
  /**
   * `questions`, the default: all but those about calls that a person is to confirm, or that may have happened. `all`: those
   * too. `none`: people only, by forms or where this server runs.
   */
  readonly hostMayAnswer?: HostMayAnswer;
} & (unknown extends Types["given"]
  ? { readonly context?: PerCaller<unknown> }
  : { readonly context: PerCaller<Types["given"]> });

/** A graph that can be called from outside: what `offerGraph` gives. */
export interface OfferedGraph {
  readonly name: string;
  readonly graph: Graph;
  readonly spec: ToolSpec;
  /** JSON Schema of its arguments, without `thread`. */
  readonly input: JsonObject;
  /** What the graph is given for arguments. Throws `invalid_input`. */
  readonly given: (args: Readonly<Record<string, unknown>>) => unknown;
  readonly context: PerCaller<unknown>;
  readonly hostMayAnswer: HostMayAnswer;
}

const names = optionNames<OfferGraphOptions<GraphTypes, ToolInput>>({
  description: true,
  name: true,
  label: true,
  safety: true,
  input: true,
  given: true,
  context: true,
  hostMayAnswer: true,
});

/**
 * Offer a graph or an agent to hosts. Throws `invalid_option` for one whose input no JSON Schema can say, or that takes an
 * argument `thread`, and `invalid_tool` for a name or a description that no host can be shown.
 */
export function offerGraph<Types extends GraphTypes, Input extends ToolInput = ToolInput>(
  graph: Graph<Types>,
  options: OfferGraphOptions<Types, Input>,
): OfferedGraph {
  checkOptions("offerGraph", options, names);
  const { description, label, safety, hostMayAnswer = "questions" } = options;
  const name = options.name ?? snakeCaseOf(graph.name);
  if (name.length > 40) throw unfit(name, "has a name of more than 40 characters", "Give it a shorter one: name: …");
  if (!["questions", "all", "none"].includes(hostMayAnswer))
    throw unfit(name, "says hostMayAnswer and not who", 'Give "questions", "all" or "none"');
  const input = options.input ?? inputOf(name, graph as Graph);
  const spec = toolSpec({
    name,
    description,
    input,
    ...(label === undefined ? {} : { label }),
    ...(safety === undefined ? {} : { safety }),
  });
  const shown = modelToolOf(spec).inputSchema;
  if (Object.hasOwn((shown["properties"] ?? {}) as object, "thread"))
    throw unfit(
      name,
      "takes an argument `thread`, by which hosts name threads",
      "Give it another name by input and given",
    );
  const given = options.given ?? (isTalking(graph) && options.input === undefined ? wordsOf(graph) : asTheyAre);
  return Object.freeze({
    name,
    graph: graph as Graph,
    spec,
    input: shown,
    given: (args: Readonly<Record<string, unknown>>) => given(readArgs(name, input, args) as never),
    context: (options as { readonly context?: PerCaller<unknown> }).context,
    hostMayAnswer,
  });
}

/** An agent: a graph that is spoken to. */
interface Talking {
  readonly inputOf: (message: string) => { readonly messages: readonly Message[] };
}

function isTalking(graph: object): graph is Talking {
  return "inputOf" in graph && typeof graph.inputOf === "function";
}

function wordsOf(agent: Talking): (args: { readonly message: string }) => unknown {
  return ({ message }) => agent.inputOf(message);
}

function asTheyAre(args: unknown): unknown {
  return args;
}

/** What a graph takes: a message where it is an agent, the schema that it declares, or its channels. */
function inputOf(name: string, graph: Graph): ToolInput {
  if (isTalking(graph)) return messageInput;
  if (graph.input !== undefined) return graph.input;
  const properties: Record<string, JsonObject> = {};
  const required: string[] = [];
  for (const [channel, { kind, schema, initial }] of Object.entries(graph.state.channels)) {
    if (graph.private.has(channel) || kind === "messages" || kind === "untracked") continue;
    const said = schema === undefined ? undefined : jsonSchemaOf(schema);
    if (said === undefined || JSON.stringify(said).includes('"$ref"'))
      throw unfit(
        name,
        `has a channel "${channel}" that its schema cannot say alone`,
        "Say what it takes: input: z.object({ … })",
      );
    properties[channel] =
      kind === "list"
        ? { type: "array", items: said }
        : kind === "record"
          ? { type: "object", additionalProperties: said }
          : said;
    if (kind !== "ephemeral" && initial() === undefined) required.push(channel);
  }
  return {
    jsonSchema: { type: "object", properties, required, additionalProperties: false },
    // What its channels take is checked when they are given. A conversation is not a host's to make up: calls stand in it.
    validate: (args) =>
      Object.keys(args as object)
        .filter((channel) => !Object.hasOwn(properties, channel))
        .map((path) => ({ path, message: "is not taken" })),
  };
}

const messageInput: ToolInput = {
  jsonSchema: {
    type: "object",
    properties: {
      message: { type: "string", minLength: 1, description: "What to tell it, with everything that it needs." },
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

function readArgs(name: string, input: ToolInput, args: Readonly<Record<string, unknown>>): unknown {
  if ("jsonSchema" in input) {
    const issues = input.validate(args);
    if (issues.length === 0) return args;
    throw unfitArgs(name, issues.map(({ path, message }) => `${path}: ${message}`).join("; "));
  }
  const read = input["~standard"].validate(args);
  if (read instanceof Promise)
    throw unfit(name, "has an input that answers later", "Use a schema that answers at once");
  if (read.issues === undefined) return read.value;
  throw unfitArgs(name, read.issues.map(({ message }) => message).join("; "));
}

function unfitArgs(name: string, why: string): StatewrightError {
  return new StatewrightError("invalid_input", {
    what: `the arguments of "${name}" do not fit: ${why.slice(0, 2_000)}`,
    next: "Give what its schema asks for",
  });
}

function unfit(name: string, what: string, next: string): StatewrightError {
  return new StatewrightError("invalid_option", { what: `"${name}" cannot be offered: it ${what}`, next });
}
