/**
 * Fault injection: stores, tools, models, clocks and plugins that fail by a plan and otherwise behave as the
 * original.
 */
import type { Model, Store, Tool, World } from "@statewright/core";
import { type ClockFaults, createFaultyClock } from "./faults/faulty-clock.ts";
import { createFaultyModel, type ModelFaults } from "./faults/faulty-model.ts";
import { createFaultyPlugin, type PluginCommand, type PluginFaults } from "./faults/faulty-plugin.ts";
import { createFaultyStore, type StoreFaults } from "./faults/faulty-store.ts";
import { createFaultyTool, type ToolFaults } from "./faults/faulty-tool.ts";

/**
 * Wraps a store, a tool, a model, a world or a plugin command with planned faults. Calls without a fault go to the
 * original.
 */
export const faults: {
  readonly store: (store: Store, plan: StoreFaults) => Store;
  readonly tool: <Faulty extends Tool<never, never>>(tool: Faulty, plan: ToolFaults) => Faulty;
  readonly model: <Faulty extends Model>(model: Faulty, plan: ModelFaults) => Faulty;
  readonly clock: <Faulty extends World>(world: Faulty, plan: ClockFaults) => Faulty;
  readonly plugin: <Command extends PluginCommand>(plugin: Command, plan: PluginFaults) => Command;
} = {
  store: createFaultyStore,
  tool: createFaultyTool,
  model: createFaultyModel,
  clock: createFaultyClock,
  plugin: createFaultyPlugin,
};
