/**
 * The audit of a source tree as a graph: a model surveys it with tools, its packages are checked in parallel, a person
 * is asked, and the report is written.
 *
 *   survey ⇄ tools
 *     └→ plan → check, check, … → judge → ask → write | decline
 */
import {
  callsOf,
  defineGraph,
  END,
  goto,
  gotos,
  type Message,
  type Model,
  route,
  START,
  sends,
  task,
  textOf,
  toolNode,
  toolRegistry,
} from "statewright";
import { Audit, type AuditState, Here, interrupts, Part } from "./audit-state.ts";
import { checkPart, gradeOf, partsOf } from "./checks.ts";
import { logged } from "./effects-log.ts";
import { guard, redact } from "./middleware.ts";
import { reportOf, writeReport } from "./report.ts";
import { tools } from "./tools.ts";

const instructions = `You survey a source tree for an audit. First call list_files. Then, in one message, call
count_lines, scan_todos, find_copies and git_history, and read_file for up to four files that say what the project is.
When you have their results, say in two or three sentences what this project is and what state it is in.`;

const shown = toolRegistry(tools).forModel();

/** The audit, with a model of your choice. */
export function auditGraph(model: Model) {
  return defineGraph({ name: "audit", version: 1, state: Audit, context: Here, interrupts })
    .nodes({
      survey: {
        retry: { attempts: 3 },
        run: async (state, { model: ask }) => ({
          messages: [await ask({ model, request: { instructions, messages: state.messages, tools: shown } })],
        }),
      },

      tools: toolNode({ tools, middleware: [guard, redact] }),

      plan: async (_state, { context, step, signal }) => ({
        parts: await step("parts", () => partsOf(context.root, signal)),
      }),

      check: task(Part, async (_state, { input: part, context, step, signal }) => {
        const recorded = <Value>(name: string, work: () => Promise<Value>) =>
          step(name, ({ idempotencyKey: key }) => logged(context.log, { key, name: `${name} ${part.name}` }, work));
        return { findings: await checkPart(context.root, part, recorded, signal) };
      }),

      judge: {
        retry: { attempts: 3 },
        run: async (state, { model: ask }) => {
          const request = {
            instructions: "Sum up the findings of an audit in two sentences.",
            messages: [dossier(state)],
            tools: [],
          };
          return {
            verdict: { grade: gradeOf(state.parts, state.findings), summary: textOf(await ask({ model, request })) },
          };
        },
      },

      ask: async ({ verdict, findings }, { interrupt }) => {
        const payload = { grade: verdict?.grade ?? "", summary: verdict?.summary ?? "", findings: findings.length };
        const { ok, note } = await interrupt("write_report", { payload });
        return goto(ok ? "write" : "decline", { decision: { write: ok, note } });
      },

      write: async (state, { context, run, step }) => ({
        report: await step("write_report", ({ idempotencyKey: key }) =>
          logged(context.log, { key, name: "write_report" }, () =>
            writeReport(context.report, reportOf(state, run.branch)),
          ),
        ),
      }),

      decline: () => ({ report: null }),
    })
    .edges({
      [START]: "survey",
      survey: route(["tools", "plan"], (state) => (asksForTools(state.messages) ? "tools" : "plan")),
      tools: "survey",
      plan: sends("check", (state) => state.parts, { otherwise: "judge" }),
      check: "judge",
      judge: "ask",
      ask: gotos("write", "decline"),
      write: END,
      decline: END,
    });
}

export type AuditGraph = ReturnType<typeof auditGraph>;

function asksForTools(messages: readonly Message[]): boolean {
  const last = messages[messages.length - 1];
  return last?.role === "assistant" && callsOf(last).length > 0;
}

/** What the judge is told: the facts and the findings, nothing of the files themselves. */
function dossier({ facts, findings }: AuditState): Message {
  const lines = [
    ...Object.entries(facts).map(([name, fact]) => `${name}: ${fact}`),
    ...findings.map(({ severity, part, text }) => `- ${severity} ${part}: ${text}`),
  ];
  return { role: "user", id: "dossier", content: [{ type: "text", text: lines.join("\n") }] };
}
