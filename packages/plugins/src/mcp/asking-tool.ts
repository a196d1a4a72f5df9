/**
 * A tool whose server may ask a person in the middle of a call: its calls run a small graph, so that the question and the
 * answer are saved. A call that was asked about is made again with what is known; the server asks the same and is answered.
 */
import {
  defineGraph,
  defineState,
  type EffectClass,
  END,
  graphTool,
  isToolError,
  route,
  type Schema,
  START,
  type Tool,
  ToolError,
  type ToolErrorKind,
  type ToolExecution,
  type ToolOutput,
  toolSpec,
} from "@statewright/core";
import type { McpOutcome, McpRound } from "./mcp-session.ts";
import type { McpTool } from "./mcp-tools.ts";
import { type AnsweredQuestion, type McpAnswer, type McpQuestion, problemOf, readAnswer } from "./question.ts";

/** Makes one call: to its end, or to the questions that it has. */
export type MakeAskingCall = (
  args: Readonly<Record<string, unknown>>,
  answered: readonly AnsweredQuestion[],
  round: McpRound | undefined,
  runtime: { readonly signal: AbortSignal; readonly progress: (text: string) => void },
) => Promise<McpOutcome>;

/** The key of a question: `tool.elicit` in the answers of the graph that calls the tool. */
const elicitKey = "elicit";

/** What is saved of a call: how it ended, or what it waits for. */
type SavedCall =
  | { readonly kind: "none" }
  | McpOutcome
  | { readonly kind: "failed"; readonly error: { readonly kind: ToolErrorKind; readonly message: string } };

interface SavedState {
  readonly args: Readonly<Record<string, unknown>>;
  readonly call: SavedCall;
  readonly answered: readonly AnsweredQuestion[];
}

/** How often a person is asked again whose answer does not fit. */
const mostTries = 8;

/** The tool for a definition. */
export function askingTool(
  server: string,
  { definition, parts }: McpTool,
  make: MakeAskingCall,
  outputOf: (outcome: Extract<McpOutcome, { kind: "done" }>) => ToolOutput,
): Tool {
  const { name, label, description, input, originalName, effect = "once", safety, timeoutMs, onError } = parts;
  const { limits, execution } = parts;
  const tool = graphTool(graphOf(server, definition.name, effect, make), {
    name,
    description,
    input,
    ...(label === undefined ? {} : { label }),
    ...(safety === undefined ? {} : { safety }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(onError === undefined ? {} : { onError }),
    ...(limits === undefined ? {} : { limits }),
    ...(execution === undefined ? {} : { execution: execution as ToolExecution<unknown> }),
    given: (args) => ({ args }),
    answer: (state) => {
      const call = state.call as SavedCall;
      if (call.kind === "done") return outputOf(call);
      if (call.kind === "failed") throw new ToolError(call.error.kind, call.error.message, { disposition: "repair" });
      throw new ToolError("unknown_outcome", "A person has confirmed that this happened. Its result is not known.");
    },
  });
  return originalName === undefined ? tool : { ...tool, spec: toolSpec({ ...tool.spec, originalName }) };
}

function graphOf(server: string, tool: string, effect: EffectClass, make: MakeAskingCall) {
  const state = defineState({
    args: plain(() => ({})),
    call: plain((): SavedCall => ({ kind: "none" })),
    answered: plain((): readonly AnsweredQuestion[] => []),
  });
  return defineGraph({ name: `mcp_${server}`, state, interrupts: { [elicitKey]: answerSchema } })
    .nodes({
      call: {
        // The start of a call that may happen once is saved: one that a crash cut short is asked about, and not repeated.
        effect,
        run: async (saved, { signal, progress }) => {
          const { args, answered, call } = saved as SavedState;
          const round = call.kind === "asks" ? call.round : undefined;
          try {
            return { call: await make(args, answered, round, { signal, progress }) };
          } catch (error) {
            if (signal.aborted || !isToolError(error)) throw error;
            const { kind, modelMessage: message } = error;
            return { call: { kind: "failed", error: { kind, message } } satisfies SavedCall };
          }
        },
      },
      ask: async (saved, { interrupt }) => {
        const { call, answered } = saved as SavedState;
        const found: AnsweredQuestion[] = [];
        for (const question of call.kind === "asks" ? call.questions : []) {
          const answer = await untilFit(question, async (payload) => {
            const given: unknown = await interrupt(elicitKey, { payload: { server, tool, ...payload } });
            return given as McpAnswer;
          });
          found.push({ key: question.key, answer });
        }
        return { answered: [...answered, ...found] };
      },
    })
    .edges({
      [START]: "call",
      call: route(["ask", END], (saved) => ((saved as SavedState).call.kind === "asks" ? "ask" : END)),
      ask: "call",
    });
}

/** Ask, and ask again with what was wrong, until an answer fits the question. */
async function untilFit(
  question: McpQuestion,
  ask: (payload: {
    readonly message: string;
    readonly requestedSchema: McpQuestion["requestedSchema"];
  }) => Promise<McpAnswer>,
): Promise<McpAnswer> {
  const { message, requestedSchema } = question;
  let problem: string | undefined;
  for (let tries = 1; tries <= mostTries; tries++) {
    const again = problem === undefined ? {} : { problem, tries };
    const answer = await ask({ message, requestedSchema, ...again });
    problem = problemOf(answer, question);
    if (problem === undefined) return answer;
  }
  return { action: "cancel" };
}

const answerSchema: Schema<McpAnswer> = {
  "~standard": {
    version: 1,
    vendor: "statewright",
    validate: (given) => {
      const answer = readAnswer(given);
      return typeof answer === "string" ? { issues: [{ message: answer }] } : { value: answer };
    },
  },
};

/** A channel of plain data that only this file writes. */
function plain(first: () => unknown): Schema<unknown, unknown> {
  return {
    "~standard": {
      version: 1,
      vendor: "statewright",
      validate: (given) => ({ value: given === undefined ? first() : given }),
    },
  };
}
