/** Deploy: four steps, each told before its work, as a console shows them. */
import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent, defineTool, type Model, type RunEvent, ToolError, type World, yoagentDialect } from "statewright";
import * as z from "zod";
import { type Print, textOfUpdate } from "./print.ts";

const steps = [
  { phase: "Building image", text: "[1/4] Building image..." },
  { phase: "Running tests", text: "[2/4] Running tests..." },
  { phase: "Pushing to registry", text: "[3/4] Pushing to registry..." },
  { phase: "Rolling out", text: "[4/4] Rolling out..." },
] as const;

export const deployApp = defineTool({
  name: "deploy_app",
  label: "Deploy App",
  description: "Deploy the application to production.",
  input: z.object({ env: z.string().default("staging").describe("Target environment") }),
  effect: "once",
  safety: { access: "destructive", network: true },
  run: async ({ env }, { signal, update, wait }) => {
    for (const [index, { phase, text }] of steps.entries()) {
      if (signal.aborted) throw ToolError.cancelled();
      update?.({ content: text, details: { step: index + 1, total: steps.length, phase } });
      await wait(2_000);
    }
    return { content: `Successfully deployed to ${env}`, details: { env, status: "success" } };
  },
});

/** An agent that deploys when it is asked to. */
function deployer(model: Model) {
  return createAgent({ name: "deployer", model, tools: [deployApp] });
}

/** Print a deployment as it goes: what a console shows for the events of its run. */
export function deployConsole(print: Print): (event: RunEvent) => void {
  const translate = yoagentDialect();
  return (event) => {
    for (const moment of translate(event)) {
      if (moment.type === "ToolExecutionStart") print("\n🚀 Starting deploy...\n");
      else if (moment.type === "ToolExecutionUpdate") print(`  ${textOfUpdate(moment.partialResult)}\n`);
      else if (moment.type === "ProgressMessage") print(`  💬 ${moment.text}\n`);
      else if (moment.type === "ToolExecutionEnd")
        print(moment.isError ? "  ❌ deploy failed\n" : "  ✅ deploy complete\n");
      else if (moment.type === "MessageUpdate") print(moment.delta);
      else if (moment.type === "AgentEnd") print("\n");
    }
  };
}

/** The program: ask for a deployment and watch it. */
export async function deploy(print: Print, options: { readonly world?: World } = {}): Promise<void> {
  const model = scriptedModel([
    call("deploy_app", { env: "production" }),
    say("Successfully deployed to production. The deployment completed all 4 stages."),
  ]);
  const run = deployer(model).run({ input: "Deploy to production.", ...options });
  run.on(deployConsole(print));
  await run.result;
}
