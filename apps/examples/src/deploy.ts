/** Deployment in four steps, with a progress update before each step. */
import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent, defineTool, type Model, type RunEvent, ToolError, type World } from "statewright";
import { yoagentDialect } from "statewright/adapter";
import * as z from "zod";
import { getUpdateText, type Print } from "./print.ts";

const steps = [
  { phase: "Building image", text: "[1/4] Building image..." },
  { phase: "Running tests", text: "[2/4] Running tests..." },
  { phase: "Pushing to registry", text: "[3/4] Pushing to registry..." },
  { phase: "Rolling out", text: "[4/4] Rolling out..." },
] as const;

export const deployApp = defineTool({
  name: "deploy",
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

/** Creates an agent with the deploy tool. */
function createDeployer(model: Model) {
  return createAgent({ name: "deployer", model, tools: [deployApp] });
}

/** Prints a deployment to a console from the events of its run. */
export function createDeployConsole(print: Print): (event: RunEvent) => void {
  const translate = yoagentDialect();
  return (event) => {
    for (const translated of translate(event)) {
      if (translated.type === "ToolExecutionStart") print(`\n🚀 Starting ${translated.toolName}...\n`);
      else if (translated.type === "ToolExecutionUpdate") print(`  ${getUpdateText(translated.partialResult)}\n`);
      else if (translated.type === "ProgressMessage") print(`  💬 ${translated.text}\n`);
      else if (translated.type === "ToolExecutionEnd")
        print(translated.isError ? `  ❌ ${translated.toolName} failed\n` : `  ✅ ${translated.toolName} complete\n`);
      else if (translated.type === "MessageUpdate") print(translated.delta);
      else if (translated.type === "AgentEnd") print("\n");
    }
  };
}

/** Requests a deployment and prints its progress. */
export async function deploy(print: Print, options: { readonly world?: World } = {}): Promise<void> {
  const model = scriptedModel([
    call(deployApp, { env: "production" }),
    say("Successfully deployed to production. The deployment completed all 4 stages."),
  ]);
  const run = createDeployer(model).run({ input: "Deploy to production.", ...options });
  run.on(createDeployConsole(print));
  await run.result;
}
