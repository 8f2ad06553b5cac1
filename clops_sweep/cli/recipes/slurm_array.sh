#!/bin/bash
#SBATCH --job-name=clops-sweep
#SBATCH --array=1-16
#SBATCH --cpus-per-task=1
#SBATCH --mem=4G
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --signal=B:USR1@120
#SBATCH --open-mode=append

# Each task computes one of 16 shards. All write to one store, which every node must reach.
space=space.py
results=results

trap 'kill -USR1 "$sweep"' USR1 # two minutes before the time limit: checkpoint and stop
trap : TERM                     # preemption: Slurm signals the sweep as well as this script

clops-sweep "$space" --results "$results" --no-ray --shard "$SLURM_ARRAY_TASK_ID/16" --stop-status 75 &
sweep=$!
wait "$sweep"
status=$?
while kill -0 "$sweep" 2>/dev/null; do # a signal ended the wait, not the sweep
  wait "$sweep"
  status=$?
done
if [ "$status" -eq 75 ]; then scontrol requeue "$SLURM_JOB_ID"; fi
exit "$status"
