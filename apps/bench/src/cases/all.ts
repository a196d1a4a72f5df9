/** All cases, in the order of measurement and of the report. */
import type { Case } from "../case.ts";
import type { Peers } from "../peers/langgraph.ts";
import {
  createAgentFileCase,
  createDefaultAgentTurnCase,
  createMemoryAgentTurnCase,
  createSavedAgentTurnCase,
  createSdkAgentTurnCase,
} from "./agent-turn.ts";
import { createBundleCases } from "./bundle.ts";
import { createChainCase } from "./chain.ts";
import { createChatCase } from "./chat.ts";
import { createColdRunCases } from "./cold-run.ts";
import { createCompileCase } from "./compile.ts";
import { createFanOutCase } from "./fan-out.ts";
import { createFirstRunCase } from "./first-run.ts";
import { createHooksCase } from "./hooks.ts";
import { createInstallationCases } from "./installed.ts";
import { createOpenStoreCases } from "./open-store.ts";
import { createPluginCallCases } from "./plugin-call.ts";
import { createQueuedRunsCase, createSlotsCase } from "./queued-runs.ts";
import { createHeadCase, createHistoryPageCase, createListCase } from "./reading.ts";
import { createReadyToolCases } from "./ready-tools.ts";
import { createResumeCase } from "./resume-run.ts";
import { createServedRunCase, createThreadListCase } from "./server-requests.ts";
import { createServerStreamCase, createSilentStreamCase } from "./server-streams.ts";
import { createSharedFileCase } from "./shared-file.ts";
import { createShortRunCase } from "./short-run.ts";
import { createStartUpCases } from "./start-up.ts";
import { createStateSizeCase } from "./state-size.ts";
import { createMemorySuperstepCase, createSavedRunCase, createSavedSuperstepCase } from "./superstep.ts";
import { createToolCallCase } from "./tool-call.ts";
import { createToolTurnCase } from "./tool-turn.ts";
import { createToolUpdateCase } from "./tool-updates.ts";
import { createTypeCheckCase } from "./type-check.ts";
import { createVisitedThreadCase } from "./visited-threads.ts";
import { createWaitingRunCase } from "./waiting-run.ts";

export function createCases(peers: Peers): readonly Case[] {
  return [
    createMemorySuperstepCase(peers),
    createChainCase(peers),
    createSavedSuperstepCase("normal", peers),
    createSavedSuperstepCase("full", peers),
    createStateSizeCase(peers),
    createShortRunCase(peers),
    createSavedRunCase(peers),
    createChatCase("plain", peers),
    createChatCase("tools", peers),
    createToolTurnCase(peers),
    createHeadCase(peers),
    createHistoryPageCase(peers),
    createListCase(),
    createWaitingRunCase(peers),
    createResumeCase(peers),
    createFanOutCase("trivial", peers),
    createFanOutCase("waiting", peers),
    createToolCallCase(peers),
    createToolUpdateCase(),
    ...createPluginCallCases(),
    ...createReadyToolCases(),
    createTypeCheckCase(peers),
    createHooksCase(),
    createMemoryAgentTurnCase(50, peers),
    createMemoryAgentTurnCase(400, peers),
    createSdkAgentTurnCase(50, peers),
    createSdkAgentTurnCase(400, peers),
    createSavedAgentTurnCase(50, peers),
    createSavedAgentTurnCase(400, peers),
    createDefaultAgentTurnCase(peers),
    createAgentFileCase(peers),
    createCompileCase("chain", peers),
    createCompileCase("parallel", peers),
    createFirstRunCase(peers),
    ...createStartUpCases(peers),
    createSharedFileCase(),
    createQueuedRunsCase(),
    createSlotsCase(),
    createThreadListCase(peers),
    createServedRunCase(peers),
    createServerStreamCase(),
    createSilentStreamCase(),
    createVisitedThreadCase(),
    ...createOpenStoreCases(peers),
    ...createColdRunCases(peers),
    ...createBundleCases(peers),
    ...createInstallationCases(peers),
  ];
}
