<#
.SYNOPSIS
    Writes the queues, access lists, messages and triggers of this host as JSON lines, for `msmq-fast import`. Nothing is changed.
.DESCRIPTION
    Windows PowerShell 5.1 as an administrator, with the feature "Microsoft Message Queue (MSMQ) Server". The form is described in
    docs/reference/windows-export.md. This script was written from the documentation and has not been run on Windows.
    What it cannot read becomes a record "finding", which `msmq-fast import` prints.
.EXAMPLE
    .\Export-Msmq.ps1 -File orders01.jsonl
    msmq-fast import orders01.jsonl --check
#>
param(
    [Parameter(Mandatory)] [string] $File,
    [string[]] $Subqueue = @(),      # such as 'private$\orders;retry': Windows has no list of subqueues for scripts
    [switch] $WithoutMessages
)
$ErrorActionPreference = 'Stop'
Add-Type -AssemblyName System.Messaging
Import-Module MSMQ

$writer = New-Object System.IO.StreamWriter($File, $false, (New-Object System.Text.UTF8Encoding($false)))
$script:queues = 0
$script:messages = 0
$infinite = [System.Messaging.Message]::InfiniteTimeout

function Write-Record($Record) { $writer.WriteLine(($Record | ConvertTo-Json -Compress -Depth 5)) }
function Write-Finding([string] $Subject, [string] $Text) { Write-Record ([ordered]@{ kind = 'finding'; subject = $Subject; text = $Text }) }
function ConvertTo-Base64([byte[]] $Bytes) { if ($Bytes) { [Convert]::ToBase64String($Bytes) } else { '' } }
function ConvertTo-Seconds($Time) { if ($Time -eq $infinite) { $null } else { [long] [Math]::Min($Time.TotalSeconds, 4294967294) } }
function ConvertTo-UnixTime([DateTime] $Time) { ([DateTimeOffset] $Time.ToUniversalTime()).ToUnixTimeSeconds() }
function Test-Feature([string] $Name) { [bool] (Get-WindowsOptionalFeature -Online -FeatureName $Name -ErrorAction SilentlyContinue | Where-Object State -eq 'Enabled') }
function Test-Running([string] $Name) { [bool] (Get-Service $Name -ErrorAction SilentlyContinue | Where-Object Status -eq 'Running') }

# The first of some properties that an object has. Windows versions name them differently; a missing one is a finding, not a default.
function Read-Property($Object, [string] $Subject, [string[]] $Names) {
    foreach ($name in $Names) { if ($Object.PSObject.Properties[$name]) { return $Object.$name } }
    Write-Finding $Subject "Windows did not tell its property $($Names[0]): set it by hand"
}

# The access list of a queue as SDDL, and the names of the accounts in it.
function Get-Access($Queue) {
    $names = [ordered]@{}
    $entries = foreach ($entry in Get-MsmqQueueACL -InputObject $Queue) {
        $sid = (New-Object System.Security.Principal.NTAccount($entry.AccountName)).Translate([System.Security.Principal.SecurityIdentifier]).Value
        $names[$sid] = [string] $entry.AccountName
        $kind = $entry.PSObject.Properties | ForEach-Object { "$($_.Value)" } | Where-Object { $_ -match '^(Allow|Deny)$' } | Select-Object -First 1
        if (-not $kind) { throw "Windows did not tell whether an entry of $($entry.AccountName) allows or denies" }
        $type = if ($kind -eq 'Deny') { 'D' } else { 'A' }
        '({0};;0x{1:x};;;{2})' -f $type, [int] $entry.Right, $sid
    }
    @{ security = 'D:' + (-join $entries); accounts = $names }
}

function Write-Message($Message) {
    $body = New-Object byte[] $Message.BodyStream.Length
    [void] $Message.BodyStream.Read($body, 0, $body.Length)
    $record = [ordered]@{
        kind = 'message'; message_id = $Message.Id; label = $Message.Label; priority = [int] $Message.Priority
        delivery = [int] $Message.Recoverable; body_type = $Message.BodyType; body_b64 = ConvertTo-Base64 $body
        extension_b64 = ConvertTo-Base64 $Message.Extension; app_specific = $Message.AppSpecific -band 0xFFFFFFFFL
        class = [int] $Message.Acknowledgment; acknowledge = [int] $Message.AcknowledgeType
        journal = [int] $Message.UseDeadLetterQueue + 2 * [int] $Message.UseJournalQueue
        correlation_id = $(if ($Message.CorrelationId -notmatch '^0{8}-') { $Message.CorrelationId })
        response_queue = $(if ($Message.ResponseQueue) { $Message.ResponseQueue.FormatName })
        admin_queue = $(if ($Message.AdministrationQueue) { $Message.AdministrationQueue.FormatName })
        destination_queue = $(if ($Message.DestinationQueue) { $Message.DestinationQueue.FormatName })
        sent_time = ConvertTo-UnixTime $Message.SentTime; arrived_time = ConvertTo-UnixTime $Message.ArrivedTime
        time_to_reach_queue = ConvertTo-Seconds $Message.TimeToReachQueue
        time_to_be_received = ConvertTo-Seconds $Message.TimeToBeReceived
        transactional = [bool] $Message.TransactionId
        first_in_transaction = [bool] $Message.IsFirstInTransaction; last_in_transaction = [bool] $Message.IsLastInTransaction
        sender_id_b64 = ConvertTo-Base64 $Message.SenderId; authenticated = [bool] $Message.Authenticated
    }
    Write-Record $record
    $script:messages++
}

function Write-Messages([string] $Path, [string] $Name) {
    if ($WithoutMessages) { return }
    $source = New-Object System.Messaging.MessageQueue($Path, [System.Messaging.QueueAccessMode]::Peek)
    $source.MessageReadPropertyFilter.SetAll()
    $cursor = $source.CreateCursor()
    $action = [System.Messaging.PeekAction]::Current
    try {
        while ($true) {
            try { $message = $source.Peek([TimeSpan]::Zero, $cursor, $action) }
            catch [System.Messaging.MessageQueueException] {
                if ($_.Exception.MessageQueueErrorCode -eq [System.Messaging.MessageQueueErrorCode]::IOTimeout) { break }
                throw
            }
            $action = [System.Messaging.PeekAction]::Next
            try { Write-Message $message } catch { Write-Finding "$Name, message $($message.Id)" $_.Exception.Message }
        }
    }
    catch { Write-Finding $Name $_.Exception.Message }
    finally { $cursor.Close(); $source.Dispose() }
}

function Write-OtherQueue([string] $Name, [string] $Kind) {
    Write-Record ([ordered]@{ kind = 'queue'; name = ".\$Name"; queue_kind = $Kind })
    $script:queues++
    Write-Messages "FormatName:DIRECT=OS:.\$Name" ".\$Name"
}

try {
    Write-Record ([ordered]@{
        kind = 'windows'; version = 1; export = [Guid]::NewGuid().ToString(); computer = $env:COMPUTERNAME
        created = ConvertTo-UnixTime (Get-Date); windows = [Environment]::OSVersion.VersionString
    })
    $outgoing = [ordered]@{}
    foreach ($queue in Get-MsmqOutgoingQueue) {
        $name = if ($queue.PSObject.Properties['FormatName']) { $queue.FormatName } else { "$queue" }
        $outgoing["$name"] = [long] $queue.MessageCount
    }
    $registry = [ordered]@{}
    $values = Get-ItemProperty 'HKLM:\SOFTWARE\Microsoft\MSMQ\Parameters'
    foreach ($name in 'AllowNonauthenticatedRpc', 'NewRemoteReadServerAllowNoneSecurityClient', 'CleanupInterval', 'StoreReliablePath') {
        if ($null -ne $values.$name) { $registry[$name] = $values.$name }
    }
    Write-Record ([ordered]@{
        kind = 'installation'; directory_integration = Test-Feature 'MSMQ-ADIntegration'; routing_server = Test-Feature 'MSMQ-RoutingServer'
        http_support = Test-Feature 'MSMQ-HTTP'; multicast_support = Test-Feature 'MSMQ-Multicast'; triggers_service = Test-Running 'MSMQTriggers'
        dtc = Test-Running 'MSDTC'; cluster = Test-Running 'ClusSvc'; outgoing = $outgoing; registry = $registry
    })
    $queues = @(Get-MsmqQueue -QueueType Private) + @(Get-MsmqQueue -QueueType Public -ErrorAction SilentlyContinue)
    foreach ($queue in $queues) {
        if (-not $queue -or $queue.QueueName -match '^private\$\\(order_queue|notify_queue|admin_queue|mqis_queue|tri_queue|triggers_)') { continue }
        $name = ".\$($queue.QueueName)"
        try { $access = Get-Access $queue } catch { $access = @{ security = $null; accounts = @{} }; Write-Finding $name $_.Exception.Message }
        $record = [ordered]@{
            kind = 'queue'; name = $name; queue_kind = $(if ($name -like '.\private$\*') { 'private' } else { 'public' })
            label = Read-Property $queue $name 'Label'
            type = Read-Property $queue $name 'Category', 'ServiceTypeGuid'
            transactional = Read-Property $queue $name 'Transactional', 'IsTransactional'
            journal = Read-Property $queue $name 'UseJournalQueue', 'Journaling'
            quota_kb = Read-Property $queue $name 'MaximumQueueSize', 'QueueQuota'
            journal_quota_kb = Read-Property $queue $name 'MaximumJournalSize', 'JournalQuota'
            authenticated = Read-Property $queue $name 'Authenticate', 'Authenticated'
            base_priority = Read-Property $queue $name 'BasePriority'
            privacy_level = Read-Property $queue $name 'EncryptionRequired', 'PrivacyLevel'
            multicast_address = Read-Property $queue $name 'MulticastAddress'
            security = $access.security; accounts = $access.accounts
        }
        if ($null -ne $record.type) { $record.type = "$($record.type)" }
        if ($null -ne $record.privacy_level) { $record.privacy_level = [int] $record.privacy_level }
        Write-Record $record
        $script:queues++
        Write-Messages "FormatName:DIRECT=OS:$name" $name
        if (-not $WithoutMessages) { Write-OtherQueue "$($queue.QueueName);journal" 'journal' }
    }
    foreach ($name in $Subqueue) { Write-OtherQueue $name 'subqueue' }
    foreach ($name in 'system$;journal', 'system$;deadletter', 'system$;deadxact') { Write-OtherQueue $name 'system' }
    foreach ($kind in 'Trigger', 'Rule') {
        foreach ($key in Get-ChildItem "HKLM:\SOFTWARE\Microsoft\MSMQ\Triggers\Data\${kind}s" -ErrorAction SilentlyContinue) {
            $found = [ordered]@{}
            foreach ($value in $key.GetValueNames()) { $found[$value] = "$($key.GetValue($value))" }
            $name = if ($found['Name']) { $found['Name'] } else { $key.PSChildName }
            Write-Record ([ordered]@{ kind = $kind.ToLower(); name = $name; values = $found })
        }
    }
    Write-Record ([ordered]@{ kind = 'end'; queues = $script:queues; messages = $script:messages })
}
finally { $writer.Dispose() }
Write-Output "$($script:queues) queues and $($script:messages) messages written to $File"
