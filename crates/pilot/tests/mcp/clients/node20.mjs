// The conformance suite imports `globSync`, which Node has since version 22, for a command that is not used here.
import * as fs from 'node:fs';
import { register, syncBuiltinESMExports } from 'node:module';

const shim = `
import fs from 'node:fs';
export * from 'node:fs';
export const globSync = fs.globSync ?? (() => { throw new Error('needs Node 22'); });
export default fs;
`;
const hooks = `
const SHIM = ${JSON.stringify('data:text/javascript,' + encodeURIComponent(shim))};
export async function resolve(specifier, context, next) {
  if (specifier === 'fs' && context.parentURL?.includes('/conformance/dist/')) return { url: SHIM, shortCircuit: true };
  return next(specifier, context);
}
`;
if (!fs.globSync) register('data:text/javascript,' + encodeURIComponent(hooks));
syncBuiltinESMExports();
